import { Command } from 'commander'
import { HooktideError } from '../core/error.ts'
import { Secret } from '../core/secret.ts'
import { SecretStore } from '../operations/secret-store.ts'
import type { CommandContext } from './context.ts'
import { ago, plural, table } from './text.ts'

const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
const maxBytes = 64 * 1024

/** `hooktide secrets …`: what stands behind `kafka:ID`. No command ever prints a secret's text. */
export function secretsCommand(context: CommandContext): Command {
  const { deps, print, printJson, note } = context
  const secrets = new Command('secrets')
    .description('Secrets in Kafka, sealed under the master key: what kafka:ID refers to')
    .addHelpText('after', examples.all)

  const withStore = <T>(run: (store: SecretStore) => Promise<T>) =>
    context.withCluster(({ kafka }, config) =>
      run(new SecretStore({ kafka, config, clock: deps.clock, tools: deps.secrets })),
    )

  secrets
    .command('list')
    .description('ids, versions, master keys and who uses them')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.list)
    .action(async ({ json = false }: { json?: boolean }) => {
      const found = await withStore((store) => store.list())
      if (json) return printJson(found)
      const now = deps.clock.now()
      const rows = found.map(({ id, version, keyId, createdAtMs, problem, usedBy }) => [
        id,
        String(version ?? '-'),
        keyId ?? '-',
        createdAtMs === null ? '-' : ago(now - createdAtMs),
        usedBy.join(', ') || '-',
        problem ?? '',
      ])
      const columns = ['ID', 'VERSION', 'KEY', 'WRITTEN', 'USED BY', 'PROBLEM'].map((title) => ({ title }))
      if (rows.length > 0) print(table(columns, rows))
      else note('No secret stands in Kafka.')
    })

  secrets
    .command('put')
    .description('seal the text on stdin (a token, a password, a PEM); an id that exists gets its next version')
    .argument('<id>', 'then referred to as kafka:<id>')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.put)
    .action(async (id: string, { json = false }: { json?: boolean }) => {
      if (!idPattern.test(id)) {
        throw new HooktideError('usage', `"${id}" can not be the id of a secret`, {
          remedy: 'Use letters, digits, ".", "_" and "-", at most 100, a letter or digit first.',
        })
      }
      const text = await readSecret(deps.stdin)
      const version = await withStore((store) => store.put(id, text))
      if (json) printJson({ id, ref: `kafka:${id}`, version })
      else print(`kafka:${id} is sealed, version ${version}; every instance uses it from now on`)
    })

  secrets
    .command('rekey')
    .description('seal everything anew under the current master key, after a new one was put in front')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.rekey)
    .action(async ({ json = false }: { json?: boolean }) => {
      const ids = await withStore((store) => store.rekey())
      if (json) printJson({ rekeyed: ids })
      else
        print(ids.length === 0 ? 'Everything is under the current key.' : `${plural(ids.length, 'secret')} sealed anew`)
    })

  secrets
    .command('remove')
    .description('take a secret out of Kafka')
    .argument('<id>')
    .option('--force', 'though subscriptions use it: their deliveries then wait')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.remove)
    .action(async (id: string, { force = false, json = false }: { force?: boolean; json?: boolean }) => {
      await withStore((store) => store.remove(id, force))
      if (json) printJson({ removed: id })
      else print(`kafka:${id} is removed`)
    })

  return secrets
}

/** One line end at the end belongs to the shell that wrote it, not to the secret. */
async function readSecret(stdin: AsyncIterable<Buffer | string>): Promise<Secret> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk as Buffer))
    bytes += chunk.length
    if (bytes > maxBytes) throw new HooktideError('usage', `a secret may have ${maxBytes} bytes, this one has more`)
  }
  const text = Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '')
  if (text !== '') return new Secret(text)
  throw new HooktideError('usage', 'there is nothing on stdin to seal', {
    remedy: 'Pipe the text in: printf %s "$TOKEN" | hooktide secrets put ID.',
  })
}

const codes = '\nExit codes: 0 done, 1 it failed, 2 wrong input'
const examples = {
  all: `
Examples:
  printf %s "$TOKEN" | hooktide secrets put acme-token
  hooktide subscriptions update acme --bearer-token kafka:acme-token
  hooktide secrets list${codes}`,
  list: `
Examples:
  hooktide secrets list
  hooktide secrets list --json${codes}`,
  put: `
Examples:
  printf %s "$TOKEN" | hooktide secrets put acme-token
  hooktide secrets put acme-client-key < client.key${codes}`,
  rekey: `
Examples:
  HOOKTIDE_MASTER_KEYS="k2:$NEW k1:$OLD" hooktide secrets rekey
  hooktide secrets rekey --json${codes}`,
  remove: `
Examples:
  hooktide secrets remove acme-token
  hooktide secrets remove acme-token --force${codes}`,
}
