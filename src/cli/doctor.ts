import { Command } from 'commander'
import type { LoadedConfig } from '../config.ts'
import { HooktideError } from '../core/error.ts'
import type { Cluster } from '../operations/cluster.ts'
import { ControlStore } from '../operations/control-store.ts'
import { topicNames } from '../operations/names.ts'
import { SubscriptionStore } from '../operations/subscription-store.ts'
import type { CommandContext } from './context.ts'
import {
  checkBroker,
  checkClock,
  checkGroups,
  checkLadder,
  checkRetention,
  checkSecrets,
  checkSubscriptions,
  checkTopics,
} from './doctor-checks.ts'
import { bad, checked, type Finding, good, warn } from './doctor-finding.ts'
import { checkControl, checkSizes } from './doctor-records.ts'
import { exitCode } from './exit-code.ts'
import { plural } from './text.ts'

/** `hooktide doctor`: everything that must be right, each looked at, each with what to do when it is not. */
export function doctorCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  return new Command('doctor')
    .description('Check configuration, broker, topics, sizes, clocks, subscriptions, orders and secrets')
    .option('--json', 'print JSON')
    .addHelpText('after', examples)
    .action(async ({ json = false }: { json?: boolean }) => {
      const findings: Finding[] = []
      const add = (more: readonly Finding[]) => {
        findings.push(...more)
        if (!json) for (const finding of more) print(findingText(finding))
      }
      await examine(context, add)
      const failed = findings.filter(({ state }) => state === 'fail').length
      const warned = findings.filter(({ state }) => state === 'warn').length
      if (json) printJson({ ok: failed === 0, findings })
      else print(`${findings.length - failed - warned} ok, ${plural(warned, 'warning')}, ${failed} failed`)
      deps.setExitCode(failed > 0 ? exitCode.failed : exitCode.ok)
    })
}

/** In order of dependence; what nothing further can be known without ends it. */
async function examine(context: CommandContext, add: (findings: readonly Finding[]) => void): Promise<void> {
  const { deps } = context
  let loaded: LoadedConfig
  try {
    loaded = context.load()
  } catch (error) {
    if (!(error instanceof HooktideError)) throw error
    const problems = error.details.length === 0 ? [error.message] : error.details
    const remedy = error.remedy ?? ''
    add(problems.map((message) => ({ check: 'configuration', ...bad(message, remedy) })))
    return
  }
  const { config, warnings } = loaded
  const warned = warnings.map((message) => warn(message, ''))
  add(await checked('configuration', async () => (warned.length === 0 ? [good('no problems')] : warned)))
  add(await checked('tiers', async () => checkLadder(config)))
  let cluster: Cluster
  try {
    cluster = await deps.connect(config)
  } catch (error) {
    add(await checked('broker', () => Promise.reject(error)))
    return
  }
  try {
    const broker = await checked('broker', () => checkBroker(cluster))
    add(broker)
    if (broker.some(({ state }) => state === 'fail')) return
    const topics = await checked('topics', () => checkTopics(cluster, config))
    add(topics)
    // Nothing below can be read where topics are missing.
    if (topics.some(({ message }) => message.includes(': missing;'))) return
    add(await checked('sizes', () => checkSizes(cluster, config)))
    add(await checked('clock', () => checkClock(cluster, config, deps.clock)))
    const store = new SubscriptionStore(cluster.kafka, topicNames(config).subscriptions, deps.clock)
    let table: Awaited<ReturnType<SubscriptionStore['read']>> | null = null
    add(
      await checked('subscriptions', async () => {
        table = await store.read()
        return checkSubscriptions(table, config)
      }),
    )
    const control = new ControlStore(cluster.kafka, topicNames(config).control, deps.clock)
    add(await checked('control', () => checkControl(control)))
    const known = table as Awaited<ReturnType<SubscriptionStore['read']>> | null
    if (known !== null) {
      add(await checked('secrets', () => checkSecrets(cluster, config, known, deps.secrets, deps.clock.now())))
    }
    add(await checked('service', () => checkGroups(cluster, config)))
    add(await checked('retention', () => checkRetention(cluster, config)))
  } finally {
    await cluster.close()
  }
}

function findingText({ check, state, message, remedy }: Finding): string {
  const line = `${state.padEnd(4)}  ${check.padEnd(13)}  ${message}`
  return remedy === '' ? line : `${line}\n${' '.repeat(21)}${remedy}`
}

const examples = `
Examples:
  hooktide doctor
  hooktide doctor --config /etc/hooktide.yaml --json | jq '.findings[] | select(.state != "ok")'
It writes a few tombstones to the control topic, to compare clocks.
Exit codes: 0 nothing failed (warnings may be there), 1 something failed (here also the configuration), 2 wrong input`
