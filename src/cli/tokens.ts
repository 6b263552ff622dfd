import { randomBytes } from 'node:crypto'
import { Command, InvalidArgumentError } from 'commander'
import { stringify } from 'yaml'
import { apiScopes, hashToken, readApiTokens } from '../core/api-token.ts'
import { HooktideError } from '../core/error.ts'
import type { CommandContext } from './context.ts'
import { wordsArgument } from './options.ts'

/** `hooktide tokens …`: tokens of the HTTP API, which keeps only their hashes. Nothing is written anywhere. */
export function tokensCommand({ deps, print, printJson, note }: CommandContext): Command {
  const tokens = new Command('tokens').description('Tokens of the HTTP API').addHelpText('after', examples.all)

  tokens
    .command('create')
    .description('make a token up, and print it with the entry for api.tokens or api.tokensFile')
    .argument('<name>', 'who or what it is for; orders are signed with it')
    .option('--scopes <scopes>', `what it may do: ${apiScopes.join(', ')} (default: read)`, scopesArgument)
    .option('--tenant <tenant>', 'sees and changes only what is of this tenant')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.create)
    .action((name: string, options: { scopes?: readonly string[]; tenant?: string; json?: boolean }) => {
      // 256 bits: a plain hash is then as good as a slow one.
      const token = `hkt_${randomBytes(32).toString('base64url')}`
      const tenant = options.tenant === undefined ? {} : { tenant: options.tenant }
      const entry = { name, hash: hashToken(token), scopes: options.scopes ?? ['read'], ...tenant }
      const { problems } = readApiTokens([entry])
      if (problems.length > 0) throw new HooktideError('usage', 'that makes no token', { problems })
      if (options.json === true) return printJson({ token, entry })
      print(token)
      print(stringify([entry]).trimEnd())
      note('The token is shown this once; keep the entry below it in api.tokensFile.')
    })

  tokens
    .command('hash')
    .description('print the hash of a token that is read from stdin')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.hash)
    .action(async ({ json = false }: { json?: boolean }) => {
      let text = ''
      for await (const part of deps.stdin) text += String(part)
      const token = text.trim()
      if (token.length < 32) {
        throw new HooktideError('usage', 'that is too short for a token', {
          remedy: 'Give at least 32 random characters: hashes are plain, so that a short one could be guessed.',
        })
      }
      const hash = hashToken(token)
      if (json) printJson({ hash })
      else print(hash)
    })

  return tokens
}

function scopesArgument(text: string, before: readonly string[] | undefined): readonly string[] {
  const scopes = wordsArgument(text, before)
  const unknown = scopes.find((scope) => !(apiScopes as readonly string[]).includes(scope))
  if (unknown === undefined) return [...new Set(scopes)]
  throw new InvalidArgumentError(`"${unknown}" is no scope; write ${apiScopes.join(', ')}.`)
}

const codes = '\nExit codes: 0 done, 1 it failed, 2 wrong input'
const examples = {
  all: `
Examples:
  hooktide tokens create ops --scopes read,write,replay,secrets
  hooktide tokens create acme-portal --scopes read,write --tenant acme${codes}`,
  create: `
Examples:
  hooktide tokens create ops --scopes read,write,replay,secrets
  hooktide tokens create acme-portal --scopes read,write --tenant acme --json${codes}`,
  hash: `
Examples:
  printf %s "$TOKEN" | hooktide tokens hash
  hooktide tokens hash < token.txt --json${codes}`,
}
