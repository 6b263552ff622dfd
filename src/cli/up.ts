import { Command, InvalidArgumentError } from 'commander'
import { HooktideError } from '../core/error.ts'
import { suggest } from '../core/suggest.ts'
import type { CommandContext } from './context.ts'
import type { Role } from './deps.ts'

const allRoles: readonly Role[] = ['router', 'deliverer', 'projector', 'api']

/** `hooktide up`: the service, until a signal ends it. */
export function upCommand({ deps, load }: CommandContext): Command {
  return new Command('up')
    .description('Run the service until SIGTERM or SIGINT; a second signal ends it at once')
    .option(
      '--roles <roles>',
      'what this process does: router, deliverer, projector, api (default: all; projector if state.enabled, api if api.listen)',
      parseRoles,
    )
    .option(
      '--workers <n>',
      'processes of it on this machine, which share the bounds of the configuration',
      parseWorkers,
      1,
    )
    .addHelpText('after', examples)
    .action(async ({ roles, workers }: { roles?: readonly Role[]; workers: number }) => {
      const loaded = load()
      const { state, api } = loaded.config
      const wanted = { router: true, deliverer: true, projector: state.enabled, api: api.listen !== null }
      const usual = allRoles.filter((role) => wanted[role])
      const chosen = roles ?? usual
      if (workers > 1 && !chosen.includes('router') && !chosen.includes('deliverer'))
        throw new HooktideError(
          'usage',
          `--workers ${workers} with --roles ${chosen.join(',')}: one process is enough`,
          {
            remedy: 'Leave out --workers; only router and deliverer are divided among several.',
          },
        )
      await deps.startService({ loaded, roles: chosen, workers })
    })
}

function parseWorkers(text: string): number {
  if (/^[1-9]\d?$/.test(text) && Number(text) <= 64) return Number(text)
  throw new InvalidArgumentError(`"${text}" is no number of processes; write 1 to 64, at most one per core.`)
}

export function parseRoles(text: string): readonly Role[] {
  const words = text.split(',').map((word) => word.trim())
  for (const word of words) {
    if ((allRoles as readonly string[]).includes(word)) continue
    const meant = suggest(word, allRoles)
    const hint = meant === null ? '' : ` Did you mean ${meant}?`
    throw new InvalidArgumentError(`"${word}" is no role; write ${allRoles.join(', ')}, or several of them.${hint}`)
  }
  return allRoles.filter((role) => words.includes(role))
}

const examples = `
Examples:
  hooktide up                                   router and deliverer in one process
  hooktide up --roles deliverer                 a process that only delivers
  hooktide up --roles projector                 one that only keeps the delivery state (docs/state.md)
  hooktide up --workers 4                       four processes on a machine with four cores (docs/scaling.md)
  hooktide up --roles api                       one that only serves the HTTP API (docs/api.md)
  KAFKA_BROKERS=kafka-1:9092 hooktide up --config /etc/hooktide.yaml
Exit codes: 0 stopped as asked, 1 it could not start or go on, 2 wrong input: also the configuration`
