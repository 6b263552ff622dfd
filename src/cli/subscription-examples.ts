const codes = '\nExit codes: 0 done, 1 it failed or was not found, 2 wrong input'
export const examples = {
  all: `
Examples:
  hooktide subscriptions add --url https://example.com/hook --types 'order.*' --secret kafka:new
  hooktide subscriptions list --status paused
  hooktide subscriptions apply subscriptions.yaml --prune --dry-run
Exit codes: 0 done, 1 it failed, was not found or differs (--dry-run), 2 wrong input`,
  add: `
Examples:
  hooktide subscriptions add --url https://example.com/hook --secret kafka:new
  hooktide subscriptions add --url https://example.com/hook --secret env:HOOK --verify   (a challenge first)
  hooktide subscriptions add --url https://example.com/hook --secret env:HOOK --rate 20 --bearer-token env:TOKEN
  hooktide subscriptions add --url https://example.com/hook --secret env:HOOK --filter '{"body.total": {"$gte": 100}}'
  hooktide subscriptions add --id billing --url https://example.com/hook --types 'order.*,invoice.paid' \\
    --ordering subscription --secret env:BILLING_SECRET --header 'X-Team: billing'${codes}`,
  list: `
Examples:
  hooktide subscriptions list
  hooktide subscriptions list --tenant acme --status disabled --json${codes}`,
  show: `
Examples:
  hooktide subscriptions show billing
  hooktide subscriptions show billing --reveal --json${codes}`,
  update: `
Examples:
  hooktide subscriptions update billing --url https://example.com/v2/hook
  hooktide subscriptions update billing --status paused --reason 'migration until Monday'${codes}`,
  rotate: `
Examples:
  hooktide subscriptions rotate-secret billing                       a fresh one; the old signs on for a day
  hooktide subscriptions rotate-secret billing --secret env:NEW --overlap 0${codes}`,
  remove: `
Examples:
  hooktide subscriptions remove billing
  hooktide subscriptions remove billing audit --json${codes}`,
  apply: `
Examples:
  hooktide subscriptions apply subscriptions.yaml
  hooktide subscriptions apply subscriptions.yaml --prune --dry-run     what would change; exit 1 if anything
  hooktide subscriptions list --reveal --json | hooktide subscriptions apply -
Exit codes: 0 applied, or nothing to do; 1 it failed, or --dry-run found something to do; 2 wrong input`,
}
