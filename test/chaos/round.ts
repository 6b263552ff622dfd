import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { connectKafka } from '../../src/app/service.ts'
import { groupNames, topicNames } from '../../src/cli/names.ts'
import { SubscriptionStore } from '../../src/cli/subscription-store.ts'
import { applyPlan, readPlan } from '../../src/cli/topic-actions.ts'
import { readTopicSpecs } from '../../src/cli/topic-folder.ts'
import { messageOf } from '../../src/core/error.ts'
import { patternMatches } from '../../src/core/match-index.ts'
import { newSigningSecret } from '../../src/secrets/make-secret.ts'
import type { Evidence, Expected } from '../sim/evidence.ts'
import { checkJournal } from '../sim/journal.ts'
import { randomStream } from '../sim/random.ts'
import type { PostEntry } from '../sim/receiver.ts'
import { storyOf } from '../sim/story.ts'
import { realClock } from '../support/clock.ts'
import { collectLogs, type FromLogs } from './collect.ts'
import { deleteTopics } from './delete-topics.ts'
import { type Duplicates, explainDuplicates } from './duplicates.ts'
import { awaitEnd } from './end.ts'
import { Fleet, type Outage, type Struck } from './fleet.ts'
import { withLateArrivals } from './late.ts'
import { logProblems, selfInflicted } from './logs.ts'
import { type Plan, type PlannedEvent, planOf } from './plan.ts'
import { EventSource, type ProducedEvent } from './produce.ts'
import { rebase } from './rebase.ts'
import { wallMs } from './receiver.ts'
import { RemoteReceiver } from './remote-receiver.ts'
import { configOf, secretName, sessionMs } from './setting.ts'
import { pause } from './wait.ts'
import { Watch } from './watch.ts'

export interface RoundOptions {
  readonly seed: number
  readonly fault: Plan['fault']
  readonly records: number
  readonly brokers: string
  /** Null: the broker is somebody else's and is left alone. */
  readonly broker: Outage | null
  /** Configurations and logs of the workers. */
  readonly folder: string
  readonly note?: (line: string) => void
}

export interface RoundResult {
  readonly seed: number
  readonly fault: Plan['fault']
  readonly workers: number
  readonly records: number
  readonly deliveries: number
  readonly posts: number
  /** POSTs that the receiver got to read only when their sender had given them up, and the longest it stood still, ms. */
  readonly late: number
  readonly stallMs: number
  /** Processes started, stopped and struck; brokers killed. */
  readonly changes: number
  readonly duplicates: Omit<Duplicates, 'problems'>
  /** Memberships lost without a fault of ours: the machine was too slow. */
  readonly evictions: number
  readonly moves: number
  readonly parked: number
  readonly dead: number
  readonly commits: number
  readonly settleMs: number
  readonly seconds: number
  readonly problems: readonly string[]
  /** For a person, when there are problems: what was done when, and what happened to the line of the first one. */
  readonly story: readonly string[]
}

const nobody = { log() {}, count() {}, time() {} }

/** One round: a topology, workers and receiver of its own, faults while events flow, then the verdict. */
export async function runRound(options: RoundOptions): Promise<RoundResult> {
  const { seed, fault, records, brokers, folder, note = () => {} } = options
  mkdirSync(folder, { recursive: true })
  const beganMs = wallMs()
  const plan = planOf(seed, fault, records, sessionMs)
  const prefix = `chaos.${fault}-${seed}-${randomBytes(3).toString('hex')}.`
  const config = configOf(prefix, brokers)
  const topics = topicNames(config)
  const { kafka, admin, close } = connectKafka(config, {}, { clock: realClock, observer: nobody })
  const receiver = new RemoteReceiver(seed, fault, records)
  const secret = newSigningSecret().reveal()
  const random = randomStream(seed, 'fleet')
  const fleet = new Fleet({ folder, prefix, brokers, secret, broker: options.broker, random })
  const problems: string[] = []
  let watch: Watch | null = null
  try {
    await applyPlan(admin, await readPlan(admin, await readTopicSpecs(config.topics)), () => {})
    await subscribe(plan, await receiver.base, new SubscriptionStore(kafka, topics.subscriptions, realClock))
    const eventsTopic = topics.events[0] as string
    const partitions = (await kafka.partitions([eventsTopic])).get(eventsTopic) ?? 1
    const lanes = Array.from({ length: config.topics.lanes }, (_, partition) => partition)
    const sources = [topics.deliveries, ...topics.tiers.map(({ topic }) => topic)]
    watch = new Watch(kafka, {
      attempts: topics.attempts,
      group: groupNames(config).deliverer,
      sources: sources.flatMap((topic) => lanes.map((partition) => ({ topic, partition }))),
    })
    watch.start()
    for (let n = 0; n < plan.workers; n++) fleet.launch(`w${n}`)
    if (!(await fleet.started(60_000))) throw new Error('the workers did not start within 60 s')

    const source = new EventSource(kafka, { topic: eventsTopic, partitions, perSecond: plan.eventsPerSecond })
    const deps = { kafka, admin, config, watch, receiver, fleet }
    // Faults strike a system at work: every lane has delivered and committed before the first of them.
    await source.produce(probes(plan))
    const asleep = await awaitEnd(deps, count(plan, source.produced), 60_000)
    if (asleep.length > 0) throw new Error(`nothing was done to it, and it did not get to work: ${asleep.join('; ')}`)
    const producing = source.produce(plan.events)
    const striking = plan.strikes.map(async (strike) => {
      await pause(strike.atMs)
      note(`${strike.t} at ${Math.round(strike.atMs)} ms`)
      await fleet.strike(strike)
    })
    const failure = await Promise.all([producing, ...striking]).then(
      () => null,
      (error: unknown) => error,
    )
    if (failure !== null) throw failure
    const lastFaultMs = wallMs()
    if (fleet.living.length === 0) problems.push('worker: none lives')
    let wanted = count(plan, source.produced)
    const stuck = await awaitEnd(deps, wanted, 60_000 + records * 10)
    const settleMs = wallMs() - lastFaultMs
    problems.push(...stuck.map((line) => `stuck: ${line}`))
    if (stuck.length === 0) {
      // One event more for every line: whatever looks at rest must also still work.
      await source.produce(probes(plan))
      wanted = count(plan, source.produced)
      const idle = await awaitEnd(deps, wanted, 40_000)
      problems.push(...idle.map((line) => `idle: after one event more, ${line}`))
    }
    await fleet.stop()
    await watch.stop()
    const logs = await collectLogs(kafka, config, watch.settledMs)
    const journal = await receiver.journal()
    const [posts, late] = withLateArrivals(journal.posts, logs.settled)
    const { maxAttempts } = config.retry
    const evidence = evidenceOf(plan, { posts, source, logs, faults: fleet.faults, maxAttempts })
    const duplicates = explainDuplicates(posts, logs.settled, watch.settledMs, fleet.faults, sessionMs)
    problems.push(...fleet.problems, ...journal.problems, ...watch.problems, ...logs.problems)
    problems.push(...duplicates.problems, ...parkedTwice(logs), ...logProblems(fleet))
    problems.push(...checkJournal(rebase(evidence, beganMs), { ended: true }))
    const { problems: _, ...counted } = duplicates
    const result: RoundResult = {
      seed,
      fault,
      workers: plan.workers,
      records: source.produced.length,
      deliveries: wanted,
      posts: posts.length,
      late,
      stallMs: journal.stallMs,
      changes: fleet.changes,
      duplicates: counted,
      evictions: selfInflicted(fleet),
      moves: logs.places.filter(({ kind }) => kind === 'tier').length,
      parked: logs.places.filter(({ kind }) => kind === 'parked').length,
      dead: logs.places.filter(({ kind }) => kind === 'dead').length,
      commits: logs.positions.length,
      settleMs,
      seconds: (wallMs() - beganMs) / 1000,
      problems,
      story: problems.length === 0 ? [] : tell(problems, rebase(evidence, beganMs), fleet, beganMs),
    }
    if (problems.length === 0) await deleteTopics(brokers, prefix)
    return result
  } finally {
    fleet.destroy()
    await watch?.stop().catch((error: unknown) => note(messageOf(error)))
    receiver.stop()
    await close()
  }
}

async function subscribe(plan: Plan, base: string, store: SubscriptionStore): Promise<void> {
  const nowMs = Date.now()
  await store.read()
  await store.write(
    plan.subscriptions.map(({ id, ordering, types, about, maxInFlight }) => ({
      id,
      subscription: {
        v: 1,
        id,
        tenant: 'default',
        url: `${base}/${id}`,
        types,
        ordering,
        status: 'active',
        secrets: [{ ref: `env:${secretName}` }],
        ...(maxInFlight === undefined ? {} : { maxInFlight }),
        description: about,
        createdAtMs: nowMs,
        updatedAtMs: nowMs,
      },
    })),
  )
}

function wants(plan: Plan, type: string) {
  return plan.subscriptions.filter(({ types }) => types.some((pattern) => patternMatches(pattern, type)))
}

function count(plan: Plan, events: readonly ProducedEvent[]): number {
  return events.reduce((sum, { type }) => sum + wants(plan, type).length, 0)
}

/** For each key and type one, so that every line and every subscription has something to do. */
function probes(plan: Plan): PlannedEvent[] {
  const keys = new Set(plan.events.map(({ key }) => key))
  const types = new Set(plan.events.map(({ type }) => type))
  return [...types].flatMap((type) => [...keys].map((key) => ({ type, key, bytes: 0 })))
}

function evidenceOf(
  plan: Plan,
  run: {
    posts: readonly PostEntry[]
    source: EventSource
    logs: FromLogs
    faults: readonly Struck[]
    maxAttempts: number
  },
): Evidence {
  const ranks = new Map<string, number>()
  for (const { kind, delivery } of run.logs.places) {
    const name = `${delivery.subscriptionId}/${delivery.eventId}`
    if (kind === 'deliveries' && !ranks.has(name)) ranks.set(name, ranks.size)
  }
  const expected = run.source.produced.flatMap(({ id, type, key, sequence }) =>
    wants(plan, type).map((subscription): Expected => {
      const whole = subscription.ordering === 'subscription'
      return {
        subscription: subscription.id,
        key,
        sequence,
        ordered: subscription.ordering !== 'none',
        ...(whole ? { line: `${subscription.id} as a whole`, rank: ranks.get(`${subscription.id}/${id}`) ?? -1 } : {}),
      }
    }),
  )
  return {
    ...run.logs,
    posts: run.posts,
    faults: run.faults,
    losses: [],
    expected,
    brokerClockMs: 0,
    maxAttempts: run.maxAttempts,
    gauges: {},
  }
}

/** Each (delivery, attempt) is parked at most once: a line is read where it stands, never copied. */
function parkedTwice({ places }: FromLogs): string[] {
  const seen = new Set<string>()
  return places.flatMap(({ kind, topic, partition, offset, delivery }) => {
    if (kind !== 'parked') return []
    const key = `${delivery.id} ${delivery.attempts}`
    if (!seen.has(key)) {
      seen.add(key)
      return []
    }
    return [`move: ${topic}/${partition}@${offset} is parked a second time after ${delivery.attempts} attempts`]
  })
}

function tell(problems: readonly string[], evidence: Evidence, fleet: Fleet, beganMs: number): string[] {
  const at = (ms: number) => (ms - beganMs).toFixed(0).padStart(8)
  const shown = problems.find((problem) => /#\d+/.test(problem)) ?? problems[0] ?? ''
  return [
    `times are ms since ${new Date(beganMs).toISOString()}`,
    ...fleet.faults.map(
      (f) => `${at(f.atMs)} ${f.kind} ${f.process ?? 'broker'}.${f.incarnation ?? ''} until ${at(f.untilMs)}`,
    ),
    `of: ${shown}`,
    ...storyOf(evidence, shown, 60),
  ]
}
