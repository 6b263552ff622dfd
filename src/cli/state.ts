import { Command } from 'commander'
import { HooktideError } from '../core/error.ts'
import { deliveryStatuses } from '../core/state-view.ts'
import { readStateStatus, type StateStatus } from '../operations/state-status.ts'
import type { StateDifference, StateProgress, StateTools } from '../operations/state-tools.ts'
import type { CommandContext } from './context.ts'
import { createProgress } from './progress.ts'
import { ago, oneLine, time } from './text.ts'

const shownDifferences = 20

/** `hooktide state …`: the queryable state that follows from the log. */
export function stateCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  const state = new Command('state')
    .description('The delivery state: how far it follows the log, making it anew, checking it')
    .addHelpText('after', examples.all)

  state
    .command('status')
    .description('where it is kept, how far it is behind the log, what it holds')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.status)
    .action(async ({ json = false }: { json?: boolean }) => {
      if (context.throughApi()) {
        const found = await context.withOperations((ops) => ops.state())
        if (json) printJson(found)
        else print(statusLines(found).join('\n'))
        return
      }
      await withState(async (tools) => {
        const positions = await tools.store.positions()
        const found = await context.withCluster(({ kafka }, config) =>
          readStateStatus({ kafka, config, state: tools.store }, null),
        )
        if (json) printJson({ where: tools.where, ...found, positions })
        else print([`kept in    ${tools.where}`, ...statusLines(found)].map(oneLine).join('\n'))
      })
    })

  state
    .command('rebuild')
    .description('fold the log from its start into a new state beside the live one, then swap')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.rebuild)
    .action(async ({ json = false }: { json?: boolean }) => {
      await withState(async (tools) => {
        const progress = createProgress(deps.stderr, deps.clock)
        try {
          const startMs = deps.clock.mono()
          const built = await context.withCluster((cluster) =>
            tools.rebuild(cluster, { signal: deps.signal, progress: (now) => progress.update(progressText(now)) }),
          )
          const durationMs = Math.round(deps.clock.mono() - startMs)
          progress.end()
          if (json) printJson({ where: tools.where, ...built, durationMs })
          else
            print(
              `${built.records} records folded, ${built.perSecond} a second; ${tools.where} is live since ${time(deps.clock.now())}`,
            )
        } finally {
          progress.end()
        }
      })
    })

  state
    .command('verify')
    .description('rebuild beside the live state up to where that is, and compare row by row')
    .option('--json', 'print JSON')
    .addHelpText('after', examples.verify)
    .action(async ({ json = false }: { json?: boolean }) => {
      await withState(async (tools) => {
        const progress = createProgress(deps.stderr, deps.clock)
        const found: StateDifference[] = []
        try {
          const verdict = await context.withCluster((cluster) =>
            tools.verify(cluster, {
              signal: deps.signal,
              progress: (now) => progress.update(progressText(now)),
              report: (difference) => void (found.length < shownDifferences && found.push(difference)),
            }),
          )
          progress.end()
          if (json) printJson({ ...verdict, found })
          else {
            for (const difference of found) print(oneLine(differenceText(difference)))
            if (verdict.differences > found.length) print(`and ${verdict.differences - found.length} more`)
            const faded = verdict.forgotten === 0 ? '' : `, ${verdict.forgotten} know more than the log still tells`
            const said = verdict.differences === 0 ? 'no differences' : `${verdict.differences} differ`
            print(`${verdict.rows} rows compared after ${verdict.records} records: ${said}${faded}`)
          }
          if (verdict.differences > 0) deps.setExitCode(1)
        } finally {
          progress.end()
        }
      })
    })

  async function withState(run: (tools: StateTools) => Promise<void>): Promise<void> {
    const tools = deps.state(context.load().config)
    try {
      await run(tools)
    } catch (error) {
      if (deps.signal.aborted) {
        throw new HooktideError('check.failed', 'ended by a signal; the live state is as it was', { cause: error })
      }
      throw error
    } finally {
      await tools.close()
    }
  }

  return state
}

function statusLines({ behind, partitions, counts }: StateStatus): string[] {
  return [
    `behind     ${behind} records${partitions === 0 ? '' : `, in ${partitions} partitions`}`,
    ...deliveryStatuses.map((status) => `${status.padEnd(11)}${counts[status]}`),
  ]
}

function progressText({ doing, done, left, perSecond, leftMs }: StateProgress): string {
  if (doing === 'comparing') return `${done} rows compared`
  if (doing === 'indexing') return `${done} records folded; making indexes`
  const rest = leftMs === null ? '' : `, ${ago(leftMs)} to go`
  return `${done} records folded, ${perSecond} a second, ${left} left${rest}`
}

function differenceText({ table, key, columns, missing }: StateDifference): string {
  if (missing !== undefined)
    return `${table} ${key}: missing in the ${missing === 'live' ? 'live state' : 'rebuilt state'}`
  const what = (columns ?? []).map(
    ({ column, live, rebuilt }) => `${column} is ${JSON.stringify(live)}, rebuilt ${JSON.stringify(rebuilt)}`,
  )
  return `${table} ${key}: ${what.join('; ')}`
}

const examples = {
  all: `
Examples:
  hooktide state status
  hooktide state rebuild
  hooktide state verify
Exit codes: 0 done, 1 it failed or differs, 2 wrong input`,
  status: `
Examples:
  hooktide state status
  hooktide state status --json | jq .behind
Exit codes: 0 done, 1 there is no state or no broker, 2 wrong input`,
  rebuild: `
Examples:
  hooktide state rebuild
  hooktide state rebuild --json
It reads the log and writes nothing but the new state; nothing is delivered. Projectors and open questions go
over to it by themselves. Ended by a signal, the live state is as it was.
Exit codes: 0 done, 1 it failed, 2 wrong input`,
  verify: `
Examples:
  hooktide state verify
  hooktide state verify --json | jq .found
Needs as much disk again as the state takes. What retention took from the log meanwhile is taken out of the live
state first.
Exit codes: 0 equal, 1 it differs or could not be compared, 2 wrong input`,
}
