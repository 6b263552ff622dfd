import { Command } from 'commander'
import type { EndpointCheck } from '../core/endpoint-check.ts'
import { verifiedText } from '../operations/subscription-verified.ts'
import type { CommandContext } from './context.ts'
import { exitCode } from './exit-code.ts'
import { oneLine } from './text.ts'

/** `hooktide endpoints …`: whether a URL may be sent to, and why. */
export function endpointsCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  const endpoints = new Command('endpoints')
    .description('Whether endpoints may be sent to, and whether they answer')
    .addHelpText('after', examples.all)

  endpoints
    .command('check')
    .description('explain what the address guard says of a URL; nothing is sent')
    .argument('<url>')
    .option('--connect', 'also connect, with the TLS handshake, and say what is wrong with it')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.check)
    .action(async (url: string, options: { connect?: boolean; json?: boolean }) => {
      const { config } = context.load()
      const check = await deps.endpoints.check(config, url, { connect: options.connect === true })
      if (options.json === true) printJson(check)
      else print(checkText(check))
      const good = check.allowed && check.connection?.ok !== false
      deps.setExitCode(good ? exitCode.ok : exitCode.failed)
    })

  endpoints
    .command('verify')
    .description('send a signed challenge to the endpoint of a subscription; one that waited for it becomes active')
    .argument('<id...>', 'subscriptions')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.verify)
    .action(async (ids: string[], options: { json?: boolean }) => {
      const { verified } = await context.withOperations((ops) => ops.subscriptions.verify(ids))
      if (options.json === true) printJson({ verified })
      else for (const result of verified) print(oneLine(verifiedText(result)))
      deps.setExitCode(verified.every((one) => one.verified) ? exitCode.ok : exitCode.failed)
    })

  return endpoints
}

export function checkText(check: EndpointCheck): string {
  const { target } = check
  const lines = [`${check.allowed ? 'allowed' : check.decided ? 'blocked' : 'unknown'}: ${oneLine(check.reason)}`]
  if (target !== null) {
    const kind = target.literal ? 'an address' : 'a name'
    lines.push(`  sent to    ${oneLine(target.href)}`, `  host       ${target.hostname} (${kind}), port ${target.port}`)
  }
  for (const { address, refusal } of check.addresses)
    lines.push(`  address    ${address}: ${refusal ?? 'may be dialled'}`)
  if (check.connection !== null)
    lines.push(`  connection ${check.connection.ok ? 'ok' : 'failed'}: ${oneLine(check.connection.detail)}`)
  if (check.remedies.length > 0) {
    lines.push('Any one of these in the configuration of the service lets it through:')
    for (const remedy of check.remedies) lines.push(`  ${remedy}`)
  } else if (!check.allowed && check.decided) lines.push('No setting lets it through: correct the URL.')
  return lines.join('\n')
}

const examples = {
  all: `
Examples:
  hooktide endpoints check https://example.com/hook
  hooktide endpoints check https://example.com/hook --connect
Exit codes: 0 allowed or verified, 1 blocked, unknown, no connection or not verified, 2 wrong input`,
  verify: `
Examples:
  hooktide endpoints verify billing
  hooktide endpoints verify billing orders --json
Exit codes: 0 the challenge came back from each of them, 1 it did not, 2 wrong input`,
  check: `
Examples:
  hooktide endpoints check https://example.com/hook
  hooktide endpoints check http://localhost:9000/ --json
  hooktide endpoints check https://example.com/hook --connect      certificate trouble is named
Exit codes: 0 allowed; 1 blocked, not resolvable or, with --connect, no connection; 2 wrong input`,
}
