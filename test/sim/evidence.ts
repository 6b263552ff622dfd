import type { Attempt } from '../../src/core/attempt.ts'
import { type Delivery, deadHeader, decodeDelivery } from '../../src/core/delivery.ts'
import type { Shape } from './features.ts'
import type { FaultEntry, Loss, MemoryBroker } from './memory-broker.ts'
import type { Applied, Given } from './operator.ts'
import type { PostEntry } from './receiver.ts'

/** What the world of a run looks like to the checker. */
export interface Layout {
  readonly group: string
  readonly deliveries: string
  readonly tiers: readonly { readonly topic: string; readonly delayMs: number }[]
  readonly parked?: string
  readonly dead: string
  readonly attempts: string
  readonly laneState?: string
}

/** One event that a subscription wants. */
export interface Expected {
  readonly subscription: string
  readonly key: string | null
  readonly sequence: number
  readonly ordered: boolean
  /** The line it is ordered in and its place there, where that is not its key and sequence. */
  readonly line?: string
  readonly rank?: number
  /** It had come to its end before, and was sent again: this is how often. */
  readonly again?: number
  /** The subscription changed while the event was under way: it may be delivered or not. */
  readonly optional?: boolean
}

/** A delivery as it stands somewhere in the log, committed. */
export interface Place {
  readonly kind: 'deliveries' | 'tier' | 'parked' | 'dead'
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly timestampMs: number
  readonly appendedMs: number
  /** When everybody could know it: the marker, or the append. */
  readonly decidedMs: number
  /** Of a tier. */
  readonly delayMs: number
  readonly delivery: Delivery
  /** Of a dead letter. */
  readonly reason?: string
}

export interface Settled {
  readonly appendedMs: number
  readonly decidedMs: number
  readonly attempt: Attempt
}

export interface Position {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly atMs: number
}

/** What operators did, and what subscriptions ask for besides types and order. */
export interface Operated {
  readonly given: readonly Given[]
  readonly applied: readonly Applied[]
  /** Delivery id → when it was sent again. */
  readonly redriven: ReadonlyMap<string, number>
  /** Delivery id of a line's head → when its line was let go on without it. */
  readonly released: ReadonlyMap<string, number>
  /** Subscriptions whose lines stop behind a dead head. */
  readonly blocking: ReadonlySet<string>
  /** Subscriptions that may have deliveries cancelled without an order: deleted, or disabled and not holding. */
  readonly cancelling: ReadonlySet<string>
  /** Subscriptions whose ordering was changed: which line a delivery stood in is not known. */
  readonly reordered: ReadonlySet<string>
  /** What an event's POSTs to a subscription must carry; null: it does not want the event at all. */
  shapeOf(subscription: string, key: string | null, sequence: number): Shape | null
}

export interface Evidence {
  readonly posts: readonly PostEntry[]
  readonly faults: readonly FaultEntry[]
  readonly losses: readonly Loss[]
  readonly expected: readonly Expected[]
  readonly places: readonly Place[]
  readonly settled: readonly Settled[]
  /** Every position the lanes' group ever committed, in order. */
  readonly positions: readonly Position[]
  /** Lines that `lane-state` still holds. */
  readonly lines: readonly string[]
  /** The broker's wall clock above the true one, ms. */
  readonly brokerClockMs: number
  /** Attempts in all; undefined: not known, so no failure tells that it was the last. */
  readonly maxAttempts?: number
  /** What must be zero when all is done, by name. */
  readonly gauges: Readonly<Record<string, number>>
  /** Undefined: nobody ordered anything, and no subscription asked for more than types and order. */
  readonly operated?: Operated
}

export function collectEvidence(
  broker: MemoryBroker,
  layout: Layout,
  run: {
    readonly posts: readonly PostEntry[]
    readonly expected: readonly Expected[]
    readonly maxAttempts?: number
    readonly gauges?: Readonly<Record<string, number>>
    readonly operated?: Operated
  },
): Evidence {
  const { group } = layout
  return {
    posts: run.posts,
    expected: run.expected,
    gauges: run.gauges ?? {},
    ...(run.operated === undefined ? {} : { operated: run.operated }),
    ...(run.maxAttempts === undefined ? {} : { maxAttempts: run.maxAttempts }),
    faults: broker.faultLog,
    losses: broker.losses,
    places: [
      ...placesOf(broker, 'deliveries', layout.deliveries),
      ...layout.tiers.flatMap(({ topic, delayMs }) => placesOf(broker, 'tier', topic, delayMs)),
      ...(layout.parked === undefined ? [] : placesOf(broker, 'parked', layout.parked)),
      ...placesOf(broker, 'dead', layout.dead),
    ],
    settled: broker.committed(layout.attempts).flatMap((entry) => {
      if (entry.record?.value == null) return []
      const attempt = JSON.parse(entry.record.value.toString()) as Attempt
      return [
        { appendedMs: entry.appendedMonoMs, decidedMs: entry.txn?.decidedMonoMs ?? entry.appendedMonoMs, attempt },
      ]
    }),
    positions: broker.group(group).commits.flatMap(({ topic, partition, offset, monoMs }) => {
      return offset === null ? [] : [{ topic, partition, offset, atMs: monoMs }]
    }),
    lines: layout.laneState === undefined ? [] : linesLeft(broker, layout.laneState),
    brokerClockMs: broker.clockOffsetMs,
  }
}

function placesOf(broker: MemoryBroker, kind: Place['kind'], topic: string, delayMs = 0): Place[] {
  return broker.committed(topic).flatMap((entry) => {
    if (entry.record === null) return []
    const decoded = decodeDelivery(entry.record)
    if (!decoded.ok) return []
    return [
      {
        kind,
        topic,
        partition: entry.partition,
        offset: entry.offset,
        timestampMs: entry.record.timestampMs,
        appendedMs: entry.appendedMonoMs,
        decidedMs: entry.txn?.decidedMonoMs ?? entry.appendedMonoMs,
        delayMs,
        delivery: decoded.value,
        ...(kind === 'dead' ? { reason: entry.record.headers[deadHeader.reason]?.toString() ?? 'unknown' } : {}),
      },
    ]
  })
}

function linesLeft(broker: MemoryBroker, topic: string): string[] {
  const last = new Map<string, boolean>()
  for (const { record, partition } of broker.committed(topic)) {
    const key = record?.key?.toString() ?? ''
    if (key.startsWith('line:')) last.set(`${partition} ${key}`, record?.value != null)
  }
  return [...last].filter(([, open]) => open).map(([key]) => key)
}

/** Retention has taken it, so it is counted instead of delivered. */
export function isLost(place: Place, losses: readonly Loss[]): boolean {
  return losses.some((l) => l.topic === place.topic && l.partition === place.partition && place.offset < l.to)
}
