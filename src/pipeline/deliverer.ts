import { type FetchedBatch, headerMap, type TopicPartition } from '../core/record.ts'
import { undecodableHeader } from '../core/rejected.ts'
import type { GroupConsumer } from '../ports.ts'
import type { Executor } from './executor.ts'
import { LaneRunner, type LaneRunnerDeps } from './lane-runner.ts'
import { noteCircuit, wakeCircuit, wakeSubscription } from './line-wakes.ts'
import type { Subscriptions } from './subscriptions.ts'

export interface DelivererDeps extends LaneRunnerDeps {
  readonly executor: Executor
  readonly subscriptions: Subscriptions
  /** Longest wait for open POSTs when the process stops, ms. */
  readonly stopDrainMs: number
  onFatal(error: Error): void
}

/** The `deliverer` role of a process: its lanes, and what the consumer group does to them. */
export class Deliverer {
  readonly #deps: DelivererDeps
  readonly #consumer: GroupConsumer
  readonly #lanes = new Map<number, LaneRunner>()
  #stopping: Promise<void> | null = null
  #leaseTimer: (() => void) | null = null
  #unsubscribe: (() => void) | null = null

  constructor(deps: DelivererDeps) {
    this.#deps = deps
    this.#consumer = deps.consumer
  }

  async start(): Promise<void> {
    this.#unsubscribe = this.#deps.subscriptions.onChange((id) => {
      const deleted = this.#deps.subscriptions.get(id) === undefined
      for (const runner of this.#lanes.values()) {
        runner.lane?.wake((lines) => wakeSubscription(lines, id, deleted))
      }
      this.#deps.executor.wake(id)
    })
    this.#watchLease()
    await this.#consumer.start({
      onAssigned: ({ gained, kept, lost }) => this.#assigned(gained, kept, lost),
      onRevoking: ({ deadlineMs, lost }) => this.#revoking(deadlineMs, lost),
      onBatch: (batch) => this.#batch(batch),
      onUndecodable: (info) => {
        const { topic, partition, offset, nextOffset, reason } = info
        const { observer, clock } = this.#deps.world
        observer.log('error', 'batch.undecodable', { topic, partition, offset, nextOffset, reason, remedy })
        observer.count('batches_undecodable', 1, { topic })
        // A record in its place that says so: the lane puts it into `rejected`, and marks it done, in one transaction.
        const headers = headerMap([[undecodableHeader, reason]])
        const record = { offset, timestampMs: clock.now(), key: null, value: null, headers }
        this.#batch({ topic, partition, records: [record], nextOffset, highWatermark: nextOffset })
      },
      onFatal: (error) => this.#deps.onFatal(error),
    })
  }

  ordered(kind: string, target: string): void {
    for (const runner of this.#lanes.values()) runner.ordered(kind, target)
  }

  circuitChanged(circuit: string, closed: boolean): void {
    for (const runner of this.#lanes.values()) {
      runner.lane?.wake((lines, gate) => wakeCircuit(lines, gate, circuit, closed))
    }
  }

  circuitOpened(circuit: string): void {
    for (const runner of this.#lanes.values()) runner.lane?.wake((lines, gate) => noteCircuit(lines, gate, circuit))
  }

  get lanes(): Iterable<LaneRunner> {
    return this.#lanes.values()
  }

  /** Stops admitting, waits for what is open, commits, leaves. A second call waits for the first. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    this.#leaseTimer?.()
    this.#unsubscribe?.()
    await this.#drain(this.#deps.world.clock.mono() + this.#deps.stopDrainMs, true)
    await this.#consumer.stop()
    await Promise.all([...this.#lanes.values()].map((runner) => runner.lose()))
  }

  #assigned(gained: readonly TopicPartition[], kept: readonly TopicPartition[], lost: readonly TopicPartition[]): void {
    const { topics, observer } = this.#deps.world
    const lanesOf = (list: readonly TopicPartition[]) =>
      list.filter((tp) => tp.topic === topics.deliveries).map((tp) => tp.partition)
    for (const partition of lanesOf(lost)) {
      const runner = this.#lanes.get(partition)
      this.#lanes.delete(partition)
      if (runner !== undefined) void runner.lose()
    }
    for (const partition of lanesOf(gained)) {
      const before = this.#lanes.get(partition)
      const ready = before === undefined ? Promise.resolve() : before.lose()
      const runner = new LaneRunner(partition, this.#deps)
      this.#lanes.set(partition, runner)
      // The old producer object is closed first: two of one id in a process would fence each other.
      void ready.then(() => {
        if (this.#lanes.get(partition) === runner && this.#stopping === null) runner.gain()
      })
    }
    for (const partition of lanesOf(kept)) this.#lanes.get(partition)?.keep()
    observer.log('info', 'lanes.assigned', {
      lanes: [...this.#lanes.keys()].sort((a, b) => a - b).join(','),
      gained: lanesOf(gained).length,
      kept: lanesOf(kept).length,
      lost: lanesOf(lost).length,
    })
    if (this.#stopping === null) this.#deps.executor.resume()
  }

  /** Drain first, fence second: the other way round finished work is thrown away and repeated. */
  async #revoking(deadlineMs: number, lost: boolean): Promise<void> {
    if (this.#lanes.size === 0) return
    if (lost) {
      // Somebody else may own the lanes already: nothing new may start, and what we would commit is fenced.
      this.#deps.executor.suspend()
      for (const runner of this.#lanes.values()) void runner.hold()
      return
    }
    await this.#drain(deadlineMs, false)
  }

  async #drain(deadlineMs: number, final: boolean): Promise<void> {
    const { clock, observer } = this.#deps.world
    this.#deps.executor.suspend()
    const open = [...this.#lanes.values()].reduce((sum, runner) => sum + runner.inFlight, 0)
    const started = clock.mono()
    // The last second is for the commit.
    const budgetMs = Math.max(0, deadlineMs - started - commitReserveMs)
    await this.#within(
      budgetMs,
      Promise.all([...this.#lanes.values()].flatMap((runner) => [runner.hold(), runner.idle()])),
    )
    await this.#within(
      Math.max(0, deadlineMs - clock.mono()),
      Promise.all([...this.#lanes.values()].map((runner) => runner.flush())),
    )
    const left = [...this.#lanes.values()].reduce((sum, runner) => sum + runner.inFlight, 0)
    if (final || open > 0)
      observer.log(left > 0 ? 'warn' : 'info', 'lanes.drained', {
        open,
        left,
        ms: Math.round(clock.mono() - started),
        final,
      })
  }

  #within(ms: number, promise: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#deps.world.clock.after(ms, resolve)
      promise.then(
        () => {
          cancel()
          resolve()
        },
        () => {
          cancel()
          resolve()
        },
      )
    })
  }

  #batch(batch: FetchedBatch): void {
    this.#lanes.get(batch.partition)?.onBatch(batch)
  }

  /** The executor stops by itself while the lease is stale; this wakes it when heartbeats are answered again. */
  #watchLease(): void {
    this.#leaseTimer = this.#deps.world.clock.after(250, () => {
      if (this.#stopping !== null) return
      this.#deps.executor.pump()
      this.#watchLease()
    })
  }
}

const commitReserveMs = 1_000

const remedy = 'Only Hooktide may write to this topic: find out who else does, and take the right away.'
