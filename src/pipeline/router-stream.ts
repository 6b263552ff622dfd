import { messageOf } from '../core/error.ts'
import type { Event } from '../core/event.ts'
import { parseEvent } from '../core/event-format.ts'
import { matchAgeMs } from '../core/freshness.ts'
import {
  type FetchedBatch,
  type GroupOffset,
  type InRecord,
  type OutRecord,
  recordBytes,
  type TopicPartition,
} from '../core/record.ts'
import { encodeRouterMetadata, type RouterStart } from '../core/router-position.ts'
import type { Span, Tracer } from '../ports/tracer.ts'
import type { Producer } from '../ports.ts'
import type { Backfills } from './backfills.ts'
import type { Breather } from './breather.ts'
import { fanOut } from './fan-out.ts'
import { rejectedEvent } from './rejected-event.ts'
import type { RouterDeps } from './router-deps.ts'

/** What the streams of a router have in common. */
export interface RouterShared {
  readonly producer: Producer
  readonly backfills: Backfills
  readonly breather: Breather
}

interface Portion {
  readonly records: readonly InRecord[]
  readonly nextOffset: number
  readonly bytes: number
  readonly undecodable?: string
}

/**
 * One events partition: strictly in order, each write acknowledged before the next, and after a failed write again from
 * the failed position (design, "Fan-out exactly once": that is why nothing is lost and repeats are recognised).
 */
export class RouterStream {
  readonly at: TopicPartition
  readonly #deps: RouterDeps
  readonly #name: string
  readonly #generation: number
  readonly #producer: Producer
  readonly #backfills: Backfills
  readonly #breather: Breather
  readonly #queue: Portion[] = []
  #position: number
  #acknowledged: number
  #committed: number
  #waitingRecords = 0
  #waitingBytes = 0
  #paused = false
  #stopped = false
  #held = false
  #working: Promise<void> | null = null

  constructor(deps: RouterDeps, shared: RouterShared, at: TopicPartition, start: RouterStart) {
    this.#deps = deps
    this.#backfills = shared.backfills
    this.#breather = shared.breather
    this.#producer = shared.producer
    this.at = at
    this.#name = `${at.topic}/${at.partition}`
    this.#generation = start.generation
    this.#position = start.offset
    this.#acknowledged = start.offset
    this.#committed = start.offset
  }

  /** Everything below it is written and acknowledged. */
  get acknowledged(): number {
    return this.#acknowledged
  }

  get generation(): number {
    return this.#generation
  }

  get waitingRecords(): number {
    return this.#waitingRecords
  }

  get paused(): boolean {
    return this.#paused
  }

  start(): void {
    this.#deps.consumer.seek(this.at, this.#position)
    this.#deps.consumer.resume([this.at])
  }

  /** After a rejoin that left the partition ours. */
  keep(): void {
    this.#held = false
    this.#deps.consumer.seek(this.at, this.#position)
    if (!this.#paused) this.#deps.consumer.resume([this.at])
    this.#work()
  }

  onBatch(batch: FetchedBatch): void {
    if (this.#stopped || batch.nextOffset <= this.#position) return
    const records = batch.records.filter((record) => record.offset >= this.#position)
    this.#enqueue({
      records,
      nextOffset: batch.nextOffset,
      bytes: records.reduce((sum, record) => sum + recordBytes(record), 0),
    })
  }

  onUndecodable(info: { offset: number; nextOffset: number; reason: string }): void {
    if (this.#stopped || info.nextOffset <= this.#position) return
    const at = {
      offset: Math.max(info.offset, this.#position),
      timestampMs: this.#deps.clock.now(),
      key: null,
      value: null,
      headers: Object.create(null),
    }
    this.#enqueue({ records: [at], nextOffset: info.nextOffset, bytes: 64, undecodable: info.reason })
  }

  /** Before a rejoin: finishes the write under way, starts no other. */
  async hold(): Promise<void> {
    this.#held = true
    await this.#working
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#working
  }

  toCommit(): { offset: GroupOffset; confirm: () => void }[] {
    const offset = this.#acknowledged
    if (offset === this.#committed) return []
    return [
      {
        offset: { ...this.at, offset, metadata: encodeRouterMetadata(this.#generation) },
        confirm: () => {
          this.#committed = offset
        },
      },
    ]
  }

  #enqueue(portion: Portion): void {
    this.#position = portion.nextOffset
    this.#queue.push(portion)
    this.#waitingRecords += portion.records.length
    this.#waitingBytes += portion.bytes
    const { maxWaitingRecords, maxWaitingBytes } = this.#deps.limits
    if (!this.#paused && (this.#waitingRecords > maxWaitingRecords || this.#waitingBytes > maxWaitingBytes)) {
      this.#paused = true
      this.#deps.consumer.pause([this.at])
    }
    this.#work()
  }

  #work(): void {
    if (this.#working !== null || this.#queue.length === 0 || this.#stopped || this.#held) return
    this.#working = this.#drain().finally(() => {
      this.#working = null
      this.#work()
    })
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0 && !this.#stopped && !this.#held) {
      const portions = this.#next()
      if (!(await this.#write(portions))) return
      this.#queue.splice(0, portions.length)
      this.#acknowledged = (portions.at(-1) as Portion).nextOffset
      for (const portion of portions) {
        this.#waitingRecords -= portion.records.length
        this.#waitingBytes -= portion.bytes
      }
      this.#relax()
    }
  }

  /** A bounded piece: what has to be repeated after a failed write. */
  #next(): Portion[] {
    let records = 0
    const portions: Portion[] = []
    for (const portion of this.#queue) {
      if (portions.length > 0 && records + portion.records.length > maxRecordsPerWrite) break
      portions.push(portion)
      records += portion.records.length
    }
    return portions
  }

  #relax(): void {
    const { maxWaitingRecords, maxWaitingBytes } = this.#deps.limits
    if (!this.#paused || this.#waitingRecords * 2 > maxWaitingRecords || this.#waitingBytes * 2 > maxWaitingBytes)
      return
    this.#paused = false
    this.#deps.consumer.resume([this.at])
  }

  /** All deliveries of these portions, acknowledged; tries until it succeeds or the stream is stopped. False: stopped. */
  async #write(portions: readonly Portion[]): Promise<boolean> {
    for (let failures = 0; !this.#stopped && !this.#held; failures++) {
      try {
        await this.#deps.subscriptions.freshen(matchAgeMs)
        const last = (portions.at(-1) as Portion).nextOffset - 1
        const givenUp = () => this.#stopped || this.#held
        if (!(await this.#backfills.ready(this.#name, this.#generation, last, givenUp))) return false
        const spans: Span[] = []
        const pieces = this.#fanOut(portions, spans)
        const events = portions.reduce((sum, portion) => sum + portion.records.length, 0)
        const expected = Math.min(events, maxRecordsPerPiece)
        for (;;) {
          await this.#breather.turn(expected)
          if (this.#stopped || this.#held) return false
          const { value: records, done } = pieces.next()
          this.#breather.more((records?.length ?? 0) - expected)
          if (done === true) break
          if (records.length > 0) await this.#producer.send(records)
        }
        for (const span of spans) span.end({})
        return true
      } catch (error) {
        if (this.#stopped) return false
        this.#deps.observer.log('warn', 'router.write_failed', {
          topic: this.at.topic,
          partition: this.at.partition,
          offset: this.#acknowledged,
          failures,
          error: messageOf(error),
        })
        await new Promise<void>((resolve) =>
          this.#deps.clock.after(Math.min(2_000, 50 * 2 ** Math.min(failures, 6)), resolve),
        )
      }
    }
    return false
  }

  /** What is written, cut into pieces of bounded size, each whole in the order that lanes need. */
  *#fanOut(portions: readonly Portion[], spans: Span[]): Generator<OutRecord[], void, undefined> {
    const { topics, lanes, limits, subscriptions, observer, tracer } = this.#deps
    let out: OutRecord[] = []
    let bytes = 0
    for (const portion of portions) {
      for (const record of portion.records) {
        const event = portion.undecodable === undefined ? parseEvent(record, this.at, limits) : undefined
        if (event === undefined || !event.ok) {
          const why = event === undefined ? { code: 'undecodable', reason: portion.undecodable ?? '' } : event
          out.push(rejectedEvent(this.#deps, this.at, record, why))
          continue
        }
        const origin = { stream: this.#name, generation: this.#generation, offset: record.offset }
        const matched = this.#backfills.live(subscriptions.wanting(event.value), origin)
        observer.count('events_routed', 1, { matched: matched.length === 0 ? 'none' : 'some' })
        const traced = tracer === null ? event.value : this.#trace(tracer, event.value, matched.length, spans)
        for (const delivery of fanOut(topics.deliveries, lanes, traced, matched, origin)) {
          out.push(delivery)
          bytes += event.value.body.length + 512
          if (bytes < limits.maxWriteBytes && out.length < maxRecordsPerPiece) continue
          yield out
          out = []
          bytes = 0
        }
      }
    }
    yield out
  }

  /** Its attempts are children of what the event brought; of its own span only where it brought nothing. */
  #trace(tracer: Tracer, event: Event, deliveries: number, spans: Span[]): Event {
    if (deliveries === 0) return event
    const span = tracer.start('route', event.traceparent, {
      'messaging.system': 'kafka',
      'messaging.destination.name': this.at.topic,
      'hooktide.event.id': event.id,
      'hooktide.event.type': event.type,
      'hooktide.tenant': event.tenant,
      'hooktide.deliveries': deliveries,
    })
    if (span === null) return event
    spans.push(span)
    return event.traceparent === null ? { ...event, traceparent: span.traceparent } : event
  }
}

const maxRecordsPerWrite = 2_000
/** Made in one step and written in one go. */
const maxRecordsPerPiece = 500
