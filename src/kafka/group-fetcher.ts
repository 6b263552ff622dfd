import { messageOf } from '../core/error.ts'
import type { FetchedBatch, TopicPartition } from '../core/record.ts'
import type { Clock, GroupHandlers, Observer } from '../ports.ts'
import { sleep } from './deadline.ts'
import { FetchTurns } from './fetch-turns.ts'
import { troubleOf } from './group-errors.ts'
import type { GroupLink } from './group-link.ts'
import type { GroupPartitions, OwnedPartition } from './group-partitions.ts'
import { library } from './load.ts'
import { type AbortedTransaction, type RecordSet, visible } from './record-set.ts'

export interface FetchLimits {
  /** How long the broker may hold a fetch that finds nothing; also the longest that a resume or seek waits for its turn. */
  readonly maxWaitMs: number
  readonly maxBytes: number
  readonly maxBytesPerPartition: number
}

export interface FetcherEvents {
  /** The link can't be trusted any more. */
  broken(link: GroupLink, error: unknown): void
  /** A handler threw: our own fault, and what it did not see must not pass for handled. */
  fatal(error: unknown): void
}

const readCommitted = 1
const earliest = -2
const latest = -1
/** Leaders move within some 100 ms; asking more often than that helps nobody. */
const retryMs = 200
const longestRetryMs = 2000
/** A first failure is mostly a leader that moves, or the begin of an outage that has its own line. */
const tellAfter = 3

/**
 * One fetch per broker at a time, only while a partition there is neither paused nor without position: idle costs
 * nothing. A fetch never waits for a handler, so no partition stands behind another's work. The position moves when a
 * batch is handed over, never otherwise: what is thrown away (paused meanwhile, sought, revoked) is read again.
 */
export class GroupFetcher {
  readonly #partitions: GroupPartitions
  readonly #limits: FetchLimits
  readonly #deps: { clock: Clock; observer: Observer; group: string }
  readonly #handlers: GroupHandlers
  readonly #events: FetcherEvents
  #link: GroupLink | undefined
  #busy = new Set<number>()
  /** Rounds in a row that failed, per broker. */
  readonly #failures = new Map<number, number>()
  readonly #turns: FetchTurns
  #turn = 0

  constructor(
    partitions: GroupPartitions,
    limits: FetchLimits,
    deps: { clock: Clock; observer: Observer; group: string },
    handlers: GroupHandlers,
    events: FetcherEvents,
  ) {
    this.#partitions = partitions
    this.#limits = limits
    this.#turns = new FetchTurns(deps.clock, limits.maxWaitMs)
    this.#deps = deps
    this.#handlers = handlers
    this.#events = events
  }

  /** Fetches through this link from now on; undefined: not at all. Answers of an earlier link no longer count. */
  use(link: GroupLink | undefined): void {
    if (this.#link === link) return
    this.#link = link
    this.#busy = new Set()
    this.pump()
  }

  /** Starts every fetch that can start. Called whenever something may have become fetchable. */
  pump(): void {
    const link = this.#link
    if (link === undefined) return
    const byNode = new Map<number, OwnedPartition[]>()
    for (const p of this.#partitions.active()) {
      const node = link.leaderOf(p.topic, p.partition)
      const list = byNode.get(node)
      if (list === undefined) byNode.set(node, [p])
      else list.push(p)
    }
    for (const [node, partitions] of byNode) {
      if (this.#busy.has(node)) continue
      const busy = this.#busy
      busy.add(node)
      void this.#round(link, node, partitions).finally(() => {
        busy.delete(node)
        if (this.#link === link) this.pump()
      })
    }
  }

  async #round(link: GroupLink, node: number, partitions: readonly OwnedPartition[]): Promise<void> {
    try {
      // No leader now.
      if (node < 0) return await this.#refresh(link, retryMs)
      await this.#fetch(link, node, partitions)
      this.#reached(node)
    } catch (error) {
      if (this.#link !== link) return
      const trouble = troubleOf(error)
      if (trouble === 'metadata' || trouble === 'topic' || trouble === 'unavailable')
        await this.#again(link, node, error)
      else this.#broken(link, error)
    }
  }

  /**
   * One broker of several may be down, or not lead any more: that is no reason to give up the others and the
   * membership. Only when metadata can't be had either, the link is broken.
   */
  async #again(link: GroupLink, node: number, error: unknown): Promise<void> {
    const failures = (this.#failures.get(node) ?? 0) + 1
    this.#failures.set(node, failures)
    const { observer, group } = this.#deps
    if (failures === tellAfter)
      observer.log('warn', 'consumer.broker_unreachable', { group, node, reason: messageOf(error) })
    try {
      await this.#refresh(link, Math.min(longestRetryMs, retryMs * 2 ** Math.min(failures - 1, 8)))
    } catch (second) {
      if (this.#link === link) this.#broken(link, second)
    }
  }

  #reached(node: number): void {
    const failures = this.#failures.get(node)
    if (failures === undefined) return
    this.#failures.delete(node)
    const { observer, group } = this.#deps
    if (failures >= tellAfter) observer.log('info', 'consumer.broker_reached', { group, node, tries: failures })
  }

  #broken(link: GroupLink, error: unknown): void {
    this.use(undefined)
    this.#events.broken(link, error)
  }

  async #fetch(link: GroupLink, node: number, all: readonly OwnedPartition[]): Promise<void> {
    const { maxBytes, maxBytesPerPartition } = this.#limits
    const { first, partitions, maxWaitMs } = this.#turns.choose(node, all)
    const asked = new Map(
      [...first, ...partitions].map((p) => [`${p.topic}/${p.partition}`, { owned: p, from: p.position as number }]),
    )
    const { responses } = await link.call<FetchResponse>(
      await link.node(node),
      'Fetch',
      {
        isolationLevel: readCommitted,
        maxWaitTime: maxWaitMs,
        minBytes: 1,
        maxBytes,
        topics: this.#ask(first, partitions, maxBytesPerPartition),
        rackId: '',
      },
      maxWaitMs,
    )
    const strays: { owned: OwnedPartition; from: number }[] = []
    let trouble: Error | undefined
    for (const { topicName, partitions: answers } of responses) {
      for (const data of answers) {
        const question = asked.get(`${topicName}/${data.partition}`)
        if (this.#link !== link) return
        if (question === undefined || !this.#partitions.accepts(question.owned, question.from)) continue
        if (data.errorCode === 0) {
          if (data.messages.bytes > 0) this.#turns.came(topicName)
          this.#deliver(question.owned, question.from, data)
        } else {
          const error = library.createErrorFromCode(data.errorCode)
          if (troubleOf(error) === 'offset') strays.push(question)
          else trouble = Object.assign(error, { topic: topicName })
        }
      }
    }
    for (const { owned, from } of strays) await this.#outOfRange(link, owned, from)
    if (trouble !== undefined) throw trouble
  }

  /** A full response serves the first partitions of the request: each begins in turn (KIP-74). */
  #ask(first: readonly OwnedPartition[], partitions: readonly OwnedPartition[], maxBytes: number): FetchTopic[] {
    const turn = this.#turn++ % partitions.length
    const topics: FetchTopic[] = []
    for (const { topic, partition, position } of [...first, ...partitions.slice(turn), ...partitions.slice(0, turn)]) {
      const part = { partition, fetchOffset: String(position), maxBytes }
      const last = topics.at(-1)
      if (last?.topic === topic) last.partitions.push(part)
      else topics.push({ topic, partitions: [part] })
    }
    return topics
  }

  /** In the order of the log: what stands before a hole, the hole, what stands behind it. A handler may end it in between. */
  #deliver(owned: OwnedPartition, from: number, data: PartitionData): void {
    const { topic, partition } = owned
    const { records, undecodable, nextOffset } = visible(data.messages, data.abortedTransactions, from)
    const highWatermark = Number(data.highWatermark)
    let at = from
    let taken = 0
    const pass = (upTo: number, hand: () => void) => {
      if (upTo <= at || !this.#partitions.accepts(owned, at)) return
      this.#hand(owned, at, upTo, hand)
      at = upTo
    }
    for (const hole of undecodable) {
      const end = records.findIndex((record, i) => i >= taken && record.offset >= hole.offset)
      const before = records.slice(taken, end < 0 ? records.length : end)
      taken += before.length
      pass(hole.offset, () =>
        this.#handlers.onBatch({ topic, partition, records: before, nextOffset: hole.offset, highWatermark }),
      )
      pass(hole.nextOffset, () => this.#handlers.onUndecodable({ topic, partition, ...hole }))
    }
    const rest = taken === 0 ? records : records.slice(taken)
    pass(nextOffset, () => this.#handlers.onBatch({ topic, partition, records: rest, nextOffset, highWatermark }))
  }

  #hand(owned: OwnedPartition, from: number, nextOffset: number, hand: () => void): void {
    owned.position = nextOffset
    try {
      hand()
    } catch (error) {
      // It may not have taken the batch: stay in front of it.
      if (owned.position === nextOffset) owned.position = from
      this.#events.fatal(error)
    }
  }

  async #refresh(link: GroupLink, delayMs: number): Promise<void> {
    await sleep(this.#deps.clock, delayMs)
    if (this.#link === link) await link.refresh()
  }

  /**
   * What stood at the position is gone (retention) or never was (the topic was made anew). Stock kafkajs commits −2 for
   * the group and goes on without a word. Here: an alarm with both offsets, and reading goes on at the log start; the
   * committed offset stays what it is until the pipeline commits past it.
   */
  async #outOfRange(link: GroupLink, owned: OwnedPartition, from: number): Promise<void> {
    const { observer, group } = this.#deps
    const { topic, partition } = owned
    const start = await this.#bound(link, owned, earliest)
    const end = await this.#bound(link, owned, latest)
    if (!this.#partitions.accepts(owned, from)) return
    if (from >= start && from <= end) return this.#refresh(link, retryMs)
    observer.log('error', 'consumer.offset_out_of_range', {
      group,
      topic,
      partition,
      committed: from,
      logStart: start,
      logEnd: end,
    })
    observer.count('consumer_offset_out_of_range', 1, { group, topic })
    const gap: FetchedBatch = { topic, partition, records: [], nextOffset: start, highWatermark: end }
    // Lets the reader's lag reach zero even if nothing more ever comes.
    if (start > from) this.#hand(owned, from, start, () => this.#handlers.onBatch(gap))
    else owned.position = start
  }

  async #bound(link: GroupLink, { topic, partition }: TopicPartition, timestamp: number): Promise<number> {
    const { responses } = await link.call<ListOffsetsResponse>(
      await link.node(link.leaderOf(topic, partition)),
      'ListOffsets',
      { isolationLevel: readCommitted, topics: [{ topic, partitions: [{ partition, timestamp }] }] },
    )
    const found = responses[0]?.partitions[0]
    if (found === undefined || found.errorCode !== 0) throw library.createErrorFromCode(found?.errorCode ?? -1)
    return Number(found.offset)
  }
}

interface FetchTopic {
  readonly topic: string
  readonly partitions: { partition: number; fetchOffset: string; maxBytes: number }[]
}

/** What a fetch says about one partition; `messages` as our decoder leaves them. */
interface PartitionData {
  readonly partition: number
  readonly errorCode: number
  readonly highWatermark: string
  readonly abortedTransactions: readonly AbortedTransaction[] | null
  readonly messages: RecordSet
}

interface FetchResponse {
  readonly responses: readonly { topicName: string; partitions: readonly PartitionData[] }[]
}

interface ListOffsetsResponse {
  readonly responses: readonly { topic: string; partitions: readonly { errorCode: number; offset: string }[] }[]
}
