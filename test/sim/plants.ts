import { deliveryHeader } from '../../src/core/delivery.ts'
import { OffsetTracker } from '../../src/core/offset-tracker.ts'
import { OriginFilter } from '../../src/core/origin-filter.ts'
import type { GroupOffset, OutRecord } from '../../src/core/record.ts'
import { Bypass } from '../../src/pipeline/bypass.ts'
import { Lane } from '../../src/pipeline/lane.ts'
import { LaneLineHost } from '../../src/pipeline/lane-line-host.ts'
import { LaneRunner } from '../../src/pipeline/lane-runner.ts'
import { Ledger } from '../../src/pipeline/ledger.ts'
import { Lines } from '../../src/pipeline/lines.ts'
import type { Producer, Transaction } from '../../src/ports.ts'
import { orderPlants } from './order-plants.ts'
import { forward, over, type Plant, readers, transactions, wrapped } from './plant-tools.ts'

/**
 * Deliberate mistakes, each of them one that a real system has made. A proof that does not find them proves nothing. They
 * are put in from outside: around Kafka where that is enough, else over a method of the part that would make it. The
 * pipeline itself knows nothing of them.
 */
export const plants: Readonly<Record<string, () => Plant>> = {
  /** PB-01: the offset of what was read is committed, not of what is done. */
  'commit-highest-seen': () =>
    over(
      Ledger.prototype,
      'snapshot',
      (original) =>
        function (this: Ledger) {
          const snapshot = original.call(this)
          return snapshot === null ? null : { ...snapshot, offsets: snapshot.offsets.map((at) => seen(this, at)) }
        },
    ),

  /** A record is done when it is read. */
  'commit-before-post': () =>
    over(
      OffsetTracker.prototype,
      'see',
      (original) =>
        function (this: OffsetTracker, offset: number) {
          const fresh = original.call(this, offset)
          this.done(offset)
          return fresh
        },
    ),

  /** What is open when the lanes are taken away counts as done. */
  'drop-results-at-revoke': () => {
    let flushing = 0
    const flush = over(
      LaneRunner.prototype,
      'flush',
      (original) =>
        async function (this: LaneRunner) {
          flushing++
          await original.call(this)
          flushing--
        },
    )
    const dirty = Object.getOwnPropertyDescriptor(Ledger.prototype, 'dirty') as PropertyDescriptor
    Object.defineProperty(Ledger.prototype, 'dirty', {
      configurable: true,
      get(this: Ledger) {
        return flushing > 0 || dirty.get?.call(this)
      },
    })
    const snapshot = over(
      Ledger.prototype,
      'snapshot',
      (original) =>
        function (this: Ledger) {
          const taken = original.call(this)
          if (flushing === 0 || taken === null) return taken
          return { ...taken, offsets: taken.offsets.map((at) => seen(this, at)) }
        },
    )
    return {
      mistake: {},
      undo() {
        snapshot.undo()
        flush.undo()
        Object.defineProperty(Ledger.prototype, 'dirty', dirty)
      },
    }
  },

  /** The move follows the commit of its source instead of standing in it. */
  'retry-after-commit': () =>
    transactions((producer, kafka) => {
      const plain = kafka.producer()
      return async (t) => {
        const moves = t.records.filter(({ topic }) => topic.startsWith('retry-'))
        const appended = await producer.transact({ ...t, records: t.records.filter((r) => !moves.includes(r)) })
        if (moves.length > 0) await plain.send(moves)
        return appended
      }
    }),

  /** A failed head is no reason for its followers to wait. */
  'followers-overtake': () =>
    over(
      Lines.prototype,
      'settled',
      (original) =>
        function (this: Lines, work, end) {
          original.call(this, work, end === 'retry' ? 'final' : end)
        },
    ),

  /** Every retry starts counting again. */
  'attempts-not-stored': () =>
    transactions(
      (producer) => (t) =>
        producer.transact({
          ...t,
          records: t.records.map((r) => withHeader(r, deliveryHeader.attempts, () => '0', isTier(r))),
        }),
    ),

  /** Knative, cronsumer, Decaton: the dead letter may fail, the record is done all the same. */
  'dead-letter-failure-ignored': () =>
    transactions((producer, kafka) => {
      const plain = kafka.producer()
      return async (t) => {
        const dead = t.records.filter(({ topic }) => topic === 'dead')
        if (dead.length > 0) void plain.send(dead).catch(() => {})
        return producer.transact({ ...t, records: t.records.filter((r) => !dead.includes(r)) })
      }
    }),

  /** Nobody is fenced: each owner has a transactional id of its own. */
  'old-generation-commits': () => {
    let owners = 0
    return wrapped((kafka) => ({ ...kafka, transactional: (id: string) => kafka.transactional(`${id}-${++owners}`) }))
  },

  /** What was fetched and not taken when the partition paused is thrown away. */
  'pause-drops-prefetch': () =>
    wrapped((kafka) => ({
      ...kafka,
      consumer: (options) => {
        const consumer = kafka.consumer(options)
        const paused = new Set<string>()
        const all = new Set<string>()
        return forward(consumer, {
          pause(partitions) {
            for (const at of partitions) paused.add(`${at.topic}/${at.partition}`)
            consumer.pause(partitions)
          },
          seek(at, offset) {
            const key = `${at.topic}/${at.partition}`
            if (options.assign === 'lanes' && paused.delete(key) && all.has(key)) return
            all.add(key)
            consumer.seek(at, offset)
          },
        })
      },
    })),

  /** PB: a delay too long for its integer is no delay (2^31 ms, here 3 s). */
  'retry-after-overflow': () =>
    transactions(
      (producer) => (t) =>
        producer.transact({
          ...t,
          records: t.records.map((r) =>
            withHeader(r, deliveryHeader.due, (due) => String(Number(due) - now(t) > 3_000 ? now(t) : due), isTier(r)),
          ),
        }),
    ),

  /** Markers, aborted and compacted records are waited for. */
  'stall-at-gap': () =>
    over(
      OffsetTracker.prototype,
      'pass',
      (original) =>
        function (this: OffsetTracker, next: number) {
          if (next > this.next && this.undone === 0 && next - this.next > 1 && this.next > 0) return
          original.call(this, next)
        },
    ),

  /** The table of lines is taken for empty. */
  'lane-state-not-read': () =>
    readers((reader) => ({
      fetch: async (at) => {
        const batch = await reader.fetch(at)
        return at.topic === 'lane-state' ? { ...batch, records: batch.records.filter(notALine) } : batch
      },
    })),

  /** The line's state follows in a write of its own. */
  'line-state-apart': () =>
    transactions((producer, kafka) => {
      const plain = kafka.producer()
      return async (t) => {
        const lines = t.records.filter((r) => r.topic === 'lane-state' && String(r.key).startsWith('line:'))
        const appended = await producer.transact({ ...t, records: t.records.filter((r) => !lines.includes(r)) })
        if (lines.length > 0) await plain.send(lines)
        return appended
      }
    }),

  /** The reader of `parked` leaves one out at the end of a batch. */
  'sweep-skips-a-record': () =>
    readers((reader) => ({
      fetch: async (at) => {
        const batch = await reader.fetch(at)
        return at.topic === 'parked' && batch.records.length > 1
          ? { ...batch, records: batch.records.slice(0, -1) }
          : batch
      },
    })),

  /** A head that comes back is parked like any other. */
  'head-parked': () =>
    over(
      Lines.prototype,
      'ripe',
      (original) =>
        function (this: Lines, key, work) {
          const line = this.get(key)
          if (line?.state == null || line.state.count === 0 || !line.ordered || line.head !== null)
            return original.call(this, key, work)
          line.state = { ...line.state, state: 'draining', head: null }
          this.overflow(key, work)
          this.pump(line)
          return true
        },
    ),

  /** What a router writes again is delivered again. */
  'repeats-taken-for-new': () => over(OriginFilter.prototype, 'accept', () => () => true),

  /** One generation for ever: a topic that begins anew looks like a repeat. */
  'reset-taken-for-repeat': () =>
    wrapped((kafka) => ({
      ...kafka,
      producer: () => {
        const producer = kafka.producer()
        return forward<Producer>(producer, {
          send: (records) =>
            producer.send(
              records.map((r) =>
                withHeader(
                  r,
                  deliveryHeader.origin,
                  (o) => o.replace(/:\d+:(\d+)$/, ':1:$1'),
                  r.topic === 'deliveries',
                ),
              ),
            ),
        })
      },
    })),

  /** A result of an epoch that is over is settled by the lane that has come since. */
  'stale-result-kept': () => {
    const current = new Map<number, Lane>()
    const position = over(
      Lane.prototype,
      'position',
      (original) =>
        function (this: Lane, index: number) {
          if (index === 0) current.set(this.partition, this)
          return original.call(this, index)
        },
    )
    const finish = over(
      Lane.prototype,
      'finish',
      (original) =>
        function (this: Lane, work, facts) {
          const now = current.get(this.partition)
          if (now === undefined || now === this || now.epoch <= this.epoch) return original.call(this, work, facts)
          if (work.line === null && now.begin(work) === 'go') original.call(now, work, facts)
        },
    )
    return {
      mistake: {},
      undo() {
        finish.undo()
        position.undo()
      },
    }
  },

  /** The model's NO_SINCE: what was open at a crash goes behind the parked ones. */
  'since-not-kept': () =>
    over(
      LaneLineHost.prototype,
      'writeState',
      (original) =>
        function (this: LaneLineHost, line, state) {
          original.call(this, line, state === null ? null : { ...state, since: 0 })
        },
    ),

  /** Nobody comes for what was passed by. */
  'passed-by-never-read': () =>
    over(
      Bypass.prototype,
      'wanted',
      () =>
        function (this: Bypass) {
          return null
        },
    ),

  ...orderPlants,
}

function seen(ledger: Ledger, at: GroupOffset): GroupOffset {
  const index = ledger.trackers.findIndex((_, i) => ledger.sourceName(i) === at.topic)
  return { ...at, offset: ledger.trackers[index]?.next ?? at.offset, metadata: '' }
}

function isTier(record: OutRecord): boolean {
  return record.topic.startsWith('retry-')
}

/** The time of a transaction, near enough: when its newest attempt ended. */
function now({ records }: Transaction): number {
  let latest = 0
  for (const r of records) {
    if (r.topic !== 'attempts' || r.value === null) continue
    const { startedAtMs, durationMs } = JSON.parse(r.value.toString()) as { startedAtMs: number; durationMs: number }
    latest = Math.max(latest, startedAtMs + durationMs)
  }
  return latest === 0 ? Number.POSITIVE_INFINITY : latest
}

function notALine({ key }: { key: Buffer | null }): boolean {
  return key?.toString().startsWith('line:') !== true
}

function withHeader(record: OutRecord, name: string, change: (value: string) => string, applies: boolean): OutRecord {
  const value = record.headers[name]
  if (!applies || value === undefined) return record
  const headers = Object.assign(Object.create(null), record.headers, { [name]: Buffer.from(change(value.toString())) })
  return { ...record, headers }
}
