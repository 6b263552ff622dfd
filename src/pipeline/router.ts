import { messageOf } from '../core/error.ts'
import type { TopicPartition } from '../core/record.ts'
import { encodeRouterMetadata, type RouterStart } from '../core/router-position.ts'
import type { Producer } from '../ports.ts'
import { Backfills } from './backfills.ts'
import { Breather } from './breather.ts'
import { JobLog } from './job-log.ts'
import { Jobs } from './jobs.ts'
import type { RouterDeps } from './router-deps.ts'
import { routerPositions } from './router-load.ts'
import { RouterStream } from './router-stream.ts'

/** Deliveries made before the rest of the process has its turn, some 20 ms of work. */
const recordsPerTurn = 500

/** The `router` role of a process: events in, deliveries out, one stream per events partition. */
export class Router {
  readonly #deps: RouterDeps
  readonly #streams = new Map<string, RouterStream>()
  /** Partitions that are ours and whose stream is being prepared, with the token of the attempt that may finish it. */
  readonly #preparing = new Map<string, number>()
  readonly #producer: Producer
  /** Of their own, so that one waits for the other only where it must. */
  readonly #jobProducer: Producer
  readonly #controlProducer: Producer
  readonly #backfills: Backfills
  readonly #breather: Breather
  readonly #jobs: Jobs
  #assignment = 0
  #stopping: Promise<void> | null = null
  #commitTimer: (() => void) | null = null
  /** Told once: while the broker is away each attempt fails. */
  #commitFails = false

  constructor(deps: RouterDeps) {
    this.#deps = deps
    const { kafka, control, clock, subscriptions, topics, reader, jobReader } = deps
    this.#producer = kafka.producer()
    this.#jobProducer = kafka.producer()
    this.#controlProducer = kafka.producer()
    const log = new JobLog({ control, topic: topics.control, clock, reader, producer: this.#controlProducer })
    this.#breather = new Breather(clock, recordsPerTurn)
    this.#backfills = new Backfills({ log, clock, subscriptions })
    this.#jobs = new Jobs({
      router: deps,
      log,
      producer: this.#jobProducer,
      reader: jobReader,
      generationOf: (stream) => this.#streams.get(stream)?.generation ?? null,
    })
  }

  async start(): Promise<void> {
    this.#armCommit()
    await this.#deps.consumer.start({
      onAssigned: (info) => this.#assigned(info),
      onRevoking: ({ lost }) => this.#revoking(lost),
      onBatch: (batch) => this.#streams.get(nameOf(batch))?.onBatch(batch),
      onUndecodable: (info) => {
        this.#deps.observer.log('error', 'batch.undecodable', { ...info, remedy: undecodableRemedy })
        this.#deps.observer.count('batches_undecodable', 1, { topic: info.topic })
        this.#streams.get(nameOf(info))?.onUndecodable(info)
      },
      onFatal: (error) => this.#deps.onFatal(error),
    })
    await this.#jobs.start()
  }

  get streams(): Iterable<RouterStream> {
    return this.#streams.values()
  }

  /** Parts of jobs that are being worked here. */
  get jobParts(): number {
    return this.#jobs.running
  }

  /** Partitions that are ours and not read yet. */
  get preparing(): number {
    return this.#preparing.size
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    this.#commitTimer?.()
    const jobs = this.#jobs.stop()
    await Promise.all([...this.#streams.values()].map((stream) => stream.stop()))
    await jobs
    await this.#commit()
    await this.#deps.consumer.stop()
    await Promise.all([this.#producer, this.#jobProducer, this.#controlProducer].map((producer) => producer.close()))
  }

  #assigned(info: {
    gained: readonly TopicPartition[]
    kept: readonly TopicPartition[]
    lost: readonly TopicPartition[]
  }): void {
    for (const tp of [...info.lost, ...info.gained]) {
      void this.#streams.get(nameOf(tp))?.stop()
      this.#streams.delete(nameOf(tp))
      this.#preparing.delete(nameOf(tp))
    }
    for (const tp of info.kept) this.#streams.get(nameOf(tp))?.keep()
    const token = ++this.#assignment
    for (const tp of info.gained) this.#preparing.set(nameOf(tp), token)
    if (info.gained.length > 0) void this.#gain(info.gained, token)
    this.#jobs.release()
    this.#deps.observer.log('info', 'router.assigned', {
      gained: info.gained.length,
      kept: info.kept.length,
      lost: info.lost.length,
    })
  }

  /** Until it succeeds or the partitions are given to somebody else. */
  async #gain(partitions: readonly TopicPartition[], token: number): Promise<void> {
    const { observer, clock } = this.#deps
    const ours = () => partitions.filter((tp) => this.#preparing.get(nameOf(tp)) === token)
    for (let failures = 0; this.#stopping === null && ours().length > 0; failures++) {
      try {
        const positions = await routerPositions(this.#deps, ours())
        await this.#claim(positions)
        const shared = { producer: this.#producer, backfills: this.#backfills, breather: this.#breather }
        for (const { at, start } of positions) {
          if (this.#stopping !== null || this.#preparing.get(nameOf(at)) !== token) continue
          this.#preparing.delete(nameOf(at))
          const stream = new RouterStream(this.#deps, shared, at, start)
          this.#streams.set(nameOf(at), stream)
          stream.start()
        }
        this.#jobs.release()
        return
      } catch (error) {
        observer.log('warn', 'router.gain_failed', { error: messageOf(error), failures })
        await new Promise<void>((resolve) => clock.after(Math.min(5_000, 100 * 2 ** Math.min(failures, 6)), resolve))
      }
    }
  }

  /**
   * A new generation is committed before anything is written with it: a router that dies right after its first write
   * would else be followed by one that starts yet another, and what it writes again would not be taken for repeats.
   */
  async #claim(positions: readonly { at: TopicPartition; start: RouterStart }[]): Promise<void> {
    const fresh = positions.filter(({ start }) => start.fresh !== null)
    if (fresh.length === 0) return
    await this.#deps.consumer.commit(
      fresh.map(({ at, start }) => ({ ...at, offset: start.offset, metadata: encodeRouterMetadata(start.generation) })),
    )
  }

  async #revoking(lost: boolean): Promise<void> {
    await Promise.all([this.#jobs.hold(), ...[...this.#streams.values()].map((stream) => stream.hold())])
    if (!lost) await this.#commit()
  }

  #armCommit(): void {
    this.#commitTimer = this.#deps.clock.after(this.#deps.limits.commitEveryMs, () => {
      void this.#commit().finally(() => {
        if (this.#stopping === null) this.#armCommit()
      })
    })
  }

  /** Always safe: it only says "written and acknowledged up to here". A failure is made good by the next one. */
  async #commit(): Promise<void> {
    const due = [...this.#streams.values()].flatMap((stream) => stream.toCommit())
    if (due.length === 0) return
    try {
      await this.#deps.consumer.commit(due.map(({ offset }) => offset))
      for (const { confirm } of due) confirm()
      this.#commitFails = false
    } catch (error) {
      if (!this.#commitFails) this.#deps.observer.log('warn', 'router.commit_failed', { error: messageOf(error) })
      this.#commitFails = true
    }
  }
}

function nameOf(tp: TopicPartition): string {
  return `${tp.topic}/${tp.partition}`
}

const undecodableRemedy =
  'Have its producer send these events again, in batches below 32 MiB unpacked, plain or as gzip, snappy, lz4 or zstd.'
