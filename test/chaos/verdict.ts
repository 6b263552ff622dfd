import type { Config } from '../../src/config.ts'
import { patternMatches } from '../../src/core/match-index.ts'
import type { Evidence, Expected } from '../sim/evidence.ts'
import { checkJournal } from '../sim/journal.ts'
import type { PostEntry } from '../sim/receiver.ts'
import { collectLogs, type FromLogs } from './collect.ts'
import { type Duplicates, explainDuplicates } from './duplicates.ts'
import type { Struck } from './fleet.ts'
import { logProblems } from './logs.ts'
import type { PlannedEvent, PlannedSubscription } from './plan.ts'
import type { EventSource, ProducedEvent } from './produce.ts'
import { rebase } from './rebase.ts'
import { sessionMs } from './setting.ts'
import type { Stage } from './stage.ts'
import { withUnheard } from './unheard.ts'

export interface Verdict {
  readonly problems: readonly string[]
  /** Times counted from the beginning of the round. */
  readonly evidence: Evidence
  readonly duplicates: Omit<Duplicates, 'problems'>
  /** POSTs that the receiver got to read only when their sender had given them up, and the longest it stood still, ms. */
  readonly late: number
  /** Attempts that failed before anything reached the receiver. */
  readonly unseen: number
  readonly stallMs: number
}

/** Judges what a round left behind: the receiver's journal, Kafka's logs, the workers' logs. The workers have ended. */
export async function judge(
  stage: Stage,
  subscriptions: readonly PlannedSubscription[],
  beganMs: number,
): Promise<Verdict> {
  const { kafka, watch, fleet, receiver, source } = stage
  const config: Config = stage.config
  const logs = await collectLogs(kafka, config)
  const journal = await receiver.journal()
  const { posts, late, unseen } = withUnheard(journal.posts, logs)
  const { maxAttempts } = config.retry
  const all = evidenceOf(subscriptions, { posts, source, logs, faults: fleet.faults, maxAttempts })
  const evidence = rebase(all, beganMs)
  const { problems: unexplained, ...duplicates } = explainDuplicates(posts, logs.settled, fleet.faults, sessionMs)
  return {
    problems: [
      ...fleet.problems,
      ...journal.problems,
      ...watch.problems,
      ...logs.problems,
      ...unexplained,
      ...parkedTwice(logs),
      ...logProblems(fleet),
      ...checkJournal(evidence, { ended: true }),
    ],
    evidence,
    duplicates,
    late,
    unseen,
    stallMs: journal.stallMs,
  }
}

function wants(subscriptions: readonly PlannedSubscription[], type: string) {
  return subscriptions.filter(({ types }) => types.some((pattern) => patternMatches(pattern, type)))
}

/** Deliveries that follow from these events. */
export function countWanted(subscriptions: readonly PlannedSubscription[], events: readonly ProducedEvent[]): number {
  return events.reduce((sum, { type }) => sum + wants(subscriptions, type).length, 0)
}

/** For each key and type one, so that every line and every subscription has something to do. */
export function probes(events: readonly PlannedEvent[]): PlannedEvent[] {
  const keys = new Set(events.map(({ key }) => key))
  const types = new Set(events.map(({ type }) => type))
  return [...types].flatMap((type) => [...keys].map((key) => ({ type, key, bytes: 0 })))
}

function evidenceOf(
  subscriptions: readonly PlannedSubscription[],
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
    wants(subscriptions, type).map((subscription): Expected => {
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
