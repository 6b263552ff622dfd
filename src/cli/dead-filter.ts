import { type Command, Option } from 'commander'
import type { CommandContext } from './context.ts'
import { sinceArgument } from './options.ts'

/** What picks out dead letters, the same for every command that does. */
export interface DeadFilterOptions {
  readonly subscription?: string
  readonly tenant?: string
  readonly reason?: string
  readonly lastError?: string
  readonly since?: number
  readonly until?: number
}

export function withDeadFilters(command: Command, { deps }: CommandContext): Command {
  const when = sinceArgument(() => deps.clock.now())
  return command
    .option('--subscription <id>', 'only of this subscription')
    .option('--tenant <tenant>', 'only of this tenant')
    .addOption(
      new Option('--reason <reason>', 'only dead for this reason').choices([
        'exhausted',
        'rejected',
        'gone',
        'blocked',
        'unreadable',
        'operator',
      ]),
    )
    .option('--last-error <text>', 'only with this last error: 503, timeout')
    .option('--since <when>', 'only dead since: how long ago, or a date', when)
    .option('--until <when>', 'only dead before', when)
}

export function deadFilter({ subscription, tenant, reason, lastError, since, until }: DeadFilterOptions) {
  return { subscription, tenant, reason, lastError, since, until }
}

export function isWithoutFilter(options: DeadFilterOptions): boolean {
  return Object.values(deadFilter(options)).every((value) => value === undefined)
}
