import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { connectKafka } from '../app/connect-kafka.ts'
import type { BrokerDeps, RunningBroker } from '../broker/options.ts'
import { startBroker } from '../broker/start.ts'
import type { DemoOptions, Env, Output } from '../cli/deps.ts'
import { HooktideError, messageOf } from '../core/error.ts'
import { createObserver } from '../observe/observer.ts'
import { applyPlan, readPlan } from '../operations/topic-actions.ts'
import { readTopicSpecs } from '../operations/topic-folder.ts'
import type { Clock } from '../ports.ts'
import { newSigningSecret } from '../secrets/make-secret.ts'
import { collectCases } from './cases.ts'
import { createCast, type Part } from './cast.ts'
import { check } from './check.ts'
import type { Evidence } from './evidence.ts'
import { loadExamples } from './examples.ts'
import { runPlay } from './play.ts'
import { readEvidence } from './read-evidence.ts'
import { reportText } from './report.ts'
import { demoConfig, secretName } from './setting.ts'
import { type Summary, summarize } from './summary.ts'

/** What the demo needs of its process. */
export interface DemoEdge {
  readonly clock: Clock
  readonly env: Env
  /** Folder of the program: data goes to `.hooktide/` in it. */
  readonly root: string
  readonly stdout: Output
  readonly stderr: Output
  /** Aborted: everything is stopped and the demo ends without a verdict. */
  readonly signal: AbortSignal
  readonly system: BrokerDeps['system']
}

/** Every example so often, when nobody says how many events. */
const rounds = 2

/**
 * The whole product on real input: a broker, real GitHub payloads, eight endpoints good and bad; then a verdict out of
 * Kafka's logs and the receiver's journal. Resolves to whether all is as it must be; rejects when it could not be played.
 */
export async function runDemo(options: DemoOptions, edge: DemoEdge): Promise<boolean> {
  const { clock, stderr, stdout, signal, root } = edge
  const examples = loadExamples()
  const folder = join(root, '.hooktide')
  const dataDir = join(folder, 'demo')
  const logFile = join(folder, 'demo.log')
  await mkdir(folder, { recursive: true })
  const log = createWriteStream(logFile)
  const observer = createObserver({ clock, stream: log, processMetrics: false })
  const note = (line: string) => stderr.write(`${line}\n`)
  const undo: (() => Promise<unknown>)[] = []
  try {
    const deps: BrokerDeps = { clock, progress: note, system: edge.system }
    const pomFile = join(root, 'broker', 'pom.xml')
    const broker = await startBroker({ dataDir, cacheDir: join(folder, 'cache'), pomFile, env: edge.env }, deps)
    undo.push(() => broker.stop())
    signal.throwIfAborted()
    note(`Kafka at ${broker.brokers} (${wayOf(broker)}), log in ${relative(root, logFile)}`)

    const id = `${Math.floor(clock.now()).toString(36)}-${randomBytes(2).toString('hex')}`
    const secret = newSigningSecret().reveal()
    const env = { ...edge.env, [secretName]: secret }
    const { config, warnings } = demoConfig(id, broker.brokers, edge.env)
    for (const warning of warnings) observer.log('warn', 'config.warning', { warning })
    const { kafka, admin, close } = connectKafka(config, env, { clock, observer })
    undo.push(close)
    await applyPlan(admin, await readPlan(admin, await readTopicSpecs(config.topics)), (line) => {
      observer.log('info', 'topics.applied', { line })
    })
    signal.throwIfAborted()

    const events = options.events ?? rounds * examples.length
    // About ten seconds of producing, as long as that is a rate for one machine.
    const perSecond = Math.min(1000, Math.max(100, Math.ceil(events / 10)))
    const cast = createCast(events, perSecond)
    const startMono = clock.mono()
    const played = await runPlay({
      config,
      env,
      clock,
      observer,
      kafka,
      signal,
      stderr,
      id,
      secret,
      cast,
      examples,
      events,
      perSecond,
    })
    const seconds = (clock.mono() - startMono) / 1000
    if (played.stalled) note('Nothing has moved for 30 s: judging what there is.')
    const evidence: Evidence = {
      ...(await readEvidence(kafka, config, cast)),
      produced: played.produced,
      requests: played.requests,
    }
    const summary = judge(evidence, cast, { id, seconds, tiers: config.topics.tiers.map(({ name }) => name) })
    stdout.write(options.json ? `${JSON.stringify(summary, null, 2)}\n` : `${reportText(summary)}\n`)
    if (!broker.owned) note(`The topics ${config.topics.prefix}* stay on the broker.`)
    else if (summary.ok) undo.unshift(() => rm(dataDir, { recursive: true, force: true }))
    else note(`The broker's data stays in ${relative(root, dataDir)}.`)
    return summary.ok
  } catch (error) {
    if (!signal.aborted) throw error
    note('Interrupted: everything is being stopped.')
    return false
  } finally {
    for (const step of undo.reverse()) {
      await step().catch((error: unknown) => note(`could not stop everything: ${messageOf(error)}`))
    }
    observer.close()
    await new Promise<void>((resolve) => log.end(resolve))
  }
}

export function judge(
  evidence: Evidence,
  cast: readonly Part[],
  run: { readonly id: string; readonly seconds: number; readonly tiers: readonly string[] },
): Summary {
  const cases = collectCases(evidence)
  return summarize(evidence, cases, check(evidence, cases), {
    ...run,
    aboutOf(subscriptionId) {
      const part = cast.find(({ id }) => id === subscriptionId)
      if (part === undefined) throw new HooktideError('internal', `no part ${subscriptionId} in the demo`)
      return part.about
    },
  })
}

function wayOf({ kind, owned }: RunningBroker): string {
  if (kind === 'url') return 'KAFKA_BROKERS'
  const way = kind === 'docker' ? 'Docker' : 'Java'
  return owned ? `${way}, for this run` : `${way}, of another process`
}
