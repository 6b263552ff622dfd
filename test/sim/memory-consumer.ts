import { HooktideError } from '../../src/core/error.ts'
import type { FetchedBatch, GroupOffset, TopicPartition } from '../../src/core/record.ts'
import type { GroupConsumer, GroupConsumerOptions, GroupHandlers } from '../../src/ports.ts'
import { Fetching } from './fetching.ts'
import type { Link } from './link.ts'
import { type MemoryCore, portError } from './memory-core.ts'
import { codeOf, keyOf } from './protocol.ts'

/** How a period of membership ended. */
type Ending = 'rebalance' | 'lost' | 'stopped'

/**
 * A group member with the manners of our kafkajs adapter: eager rejoins with a bounded drain before each, everything paused
 * after it, a gained partition without a position until it is sought.
 */
export class MemoryConsumer implements GroupConsumer {
  readonly #core: MemoryCore
  readonly #link: Link
  readonly #options: GroupConsumerOptions
  #handlers: GroupHandlers | null = null
  #stopped = false
  #memberId: string | null = null
  #generation = -1
  #owned: readonly TopicPartition[] = []
  #leaseMonoMs = Number.NEGATIVE_INFINITY
  #fetching: Fetching | null = null
  #end: ((how: Ending) => void) | null = null

  constructor(core: MemoryCore, link: Link, options: GroupConsumerOptions) {
    this.#core = core
    this.#link = link
    this.#options = options
    const longestMs = core.settings.sessionTimeoutMs - 2_000
    if (options.drainMs > longestMs) {
      throw new HooktideError(
        'config.invalid',
        `drainMs ${options.drainMs} does not fit into the session: ${longestMs}`,
      )
    }
  }

  async start(handlers: GroupHandlers): Promise<void> {
    if (this.#handlers !== null || this.#stopped)
      throw new HooktideError('usage', 'consumer was started or stopped before')
    this.#handlers = handlers
    await this.#retrying(() => {
      for (const topic of this.#options.topics) this.#core.logs(topic)
    })
    await new Promise<void>((resolve, reject) => {
      const stopped = () => reject(new HooktideError('consumer.failed', 'consumer was stopped before it joined'))
      this.#run(handlers, resolve).then(stopped, (error) => {
        reject(error)
        handlers.onFatal(error)
      })
    })
  }

  pause(partitions: readonly TopicPartition[]): void {
    this.#fetching?.pause(partitions)
  }

  resume(partitions: readonly TopicPartition[]): void {
    this.#fetching?.resume(partitions)
  }

  seek(partition: TopicPartition, offset: number): void {
    if (!Number.isSafeInteger(offset) || offset < 0) throw new HooktideError('usage', `seek to ${offset}`)
    this.#fetching?.seek(partition, offset)
  }

  async commit(offsets: readonly GroupOffset[]): Promise<void> {
    if (offsets.length === 0) return
    if (this.#stopped) throw new HooktideError('usage', 'commit after stop: commit first, then stop')
    const memberId = this.#memberId
    const generation = this.#generation
    const owned = new Set(this.#owned.map(keyOf))
    if (memberId === null || offsets.some((at) => at.offset === null || at.offset < 0 || !owned.has(keyOf(at)))) {
      throw new HooktideError('consumer.failed', 'commit refused: no membership, not owned, or no offset')
    }
    const sentMs = this.#link.process.mono()
    try {
      await this.#link.call(() => {
        this.#core.requireCoordinator()
        this.#group().commit(memberId, generation, offsets)
      })
    } catch (error) {
      throw portError(error, 'consumer.failed')
    }
    this.#leaseMonoMs = Math.max(this.#leaseMonoMs, sentMs)
  }

  leaseAgeMs(): number {
    if (this.#memberId === null) return Number.POSITIVE_INFINITY
    return this.#link.process.mono() - this.#leaseMonoMs
  }

  async stop(): Promise<void> {
    if (this.#stopped) return
    this.#stopped = true
    this.#fetching?.stop()
    this.#end?.('stopped')
    const memberId = this.#memberId
    if (memberId === null) return
    this.#memberId = null
    // An unanswered LeaveGroup costs the others a session time-out, nothing more.
    await this.#link.call(() => this.#group().leave(memberId)).catch(() => {})
  }

  async #run(handlers: GroupHandlers, firstJoin: () => void): Promise<void> {
    while (!this.#stopped) {
      const assigned = await this.#join()
      if (this.#stopped) {
        if (this.#memberId !== null) await this.#leaveLate()
        break
      }
      this.#assigned(handlers, assigned)
      firstJoin()
      const ending = await this.#member()
      this.#fetching?.stop()
      if (ending === 'stopped') break
      if (ending === 'lost') this.#memberId = null
      await this.#revoke(handlers, ending === 'lost')
    }
  }

  /** Until a join and its sync have succeeded. A membership that is gone starts over as a new member, owning nothing. */
  async #join(): Promise<{ kept: boolean; partitions: readonly TopicPartition[] }> {
    /** Commits under the old generation are still good: what we own then is a claim, and may be kept. */
    let active = this.#memberId !== null
    while (!this.#stopped) {
      try {
        const request = {
          memberId: this.#memberId,
          processId: this.#link.process.id,
          topics: this.#options.topics,
          assign: this.#options.assign,
          owned: active ? this.#owned : [],
          ownedGeneration: active ? this.#generation : -1,
        }
        const joined = await this.#link.call(() => {
          this.#core.requireCoordinator()
          return this.#group().join(request)
        })
        this.#memberId = joined.memberId
        const sentMs = this.#link.process.mono()
        const partitions = await this.#link.call(() => this.#group().sync(joined.memberId, joined.generation))
        // Nobody else can have owned what we keep only if no generation went by without us.
        const kept = active && joined.generation === this.#generation + 1
        this.#generation = joined.generation
        this.#leaseMonoMs = sentMs
        return { kept, partitions }
      } catch (error) {
        const code = codeOf(error)
        if (code === 'unknown-member' || code === 'illegal-generation') {
          this.#memberId = null
          active = false
        } else if (code === null || code === 'unknown-topic') throw portError(error, 'consumer.failed')
        else if (code !== 'rebalance-in-progress') await this.#link.sleep(50 + this.#core.latencyRandom() * 200)
      }
    }
    return { kept: false, partitions: [] }
  }

  #assigned(
    handlers: GroupHandlers,
    { kept, partitions }: { kept: boolean; partitions: readonly TopicPartition[] },
  ): void {
    const before = new Set(kept ? this.#owned.map(keyOf) : [])
    const now = new Set(partitions.map(keyOf))
    const still = partitions.filter((at) => before.has(keyOf(at)))
    const gained = partitions.filter((at) => !before.has(keyOf(at)))
    // What we had and did not keep without interruption is lost, also where it came straight back.
    const lost = this.#owned.filter((at) => !kept || !now.has(keyOf(at)))
    const positions = this.#fetching?.positions(still) ?? new Map<string, number>()
    this.#owned = partitions
    this.#fetching = new Fetching(this.#core, this.#link, this.#options.group, partitions, positions, {
      onBatch: (batch: FetchedBatch) => handlers.onBatch(batch),
      onUndecodable: (info) => handlers.onUndecodable(info),
    })
    handlers.onAssigned({ gained, kept: still, lost, generation: this.#generation })
  }

  /** Heartbeats until something ends the generation for us. */
  async #member(): Promise<Ending> {
    return new Promise((resolve) => {
      let over = false
      const end = (how: Ending) => {
        if (over) return
        over = true
        this.#end = null
        resolve(how)
      }
      this.#end = end
      const beat = async () => {
        const verdict = await this.#heartbeat()
        if (verdict !== null) end(verdict)
        else if (!over) this.#link.process.after(this.#core.settings.heartbeatMs, beat)
      }
      this.#link.process.after(this.#core.settings.heartbeatMs, beat)
    })
  }

  /** null: still a member, or nobody could be asked. */
  async #heartbeat(): Promise<Ending | null> {
    const memberId = this.#memberId
    const generation = this.#generation
    if (memberId === null) return null
    const sentMs = this.#link.process.mono()
    let verdict: Ending | null = null
    try {
      await this.#link.call(() => {
        this.#core.requireCoordinator()
        this.#group().heartbeat(memberId, generation)
      })
    } catch (error) {
      const code = codeOf(error)
      if (code === 'unknown-member' || code === 'illegal-generation') return 'lost'
      // Being told of a rebalance confirms the membership all the same.
      if (code !== 'rebalance-in-progress') return null
      verdict = 'rebalance'
    }
    if (generation === this.#generation) this.#leaseMonoMs = Math.max(this.#leaseMonoMs, sentMs)
    return verdict
  }

  /** Waits for the pipeline's drain, at most to its deadline; heartbeats go on meanwhile. */
  #revoke(handlers: GroupHandlers, lost: boolean): Promise<void> {
    const { process } = this.#link
    const deadlineMs = process.mono() + this.#options.drainMs
    return new Promise((resolve) => {
      let over = false
      const done = () => {
        over = true
        cancel()
        this.#end = null
        resolve()
      }
      const cancel = process.after(this.#options.drainMs, done)
      this.#end = done
      const beat = async () => {
        if (over || lost) return
        await this.#heartbeat()
        if (!over) process.after(this.#core.settings.heartbeatMs, beat)
      }
      void beat()
      handlers.onRevoking({ deadlineMs, lost }).then(done, (error) => {
        done()
        handlers.onFatal(error)
      })
    })
  }

  async #leaveLate(): Promise<void> {
    const memberId = this.#memberId as string
    this.#memberId = null
    await this.#link.call(() => this.#group().leave(memberId)).catch(() => {})
  }

  async #retrying<T>(execute: () => T): Promise<T> {
    for (;;) {
      try {
        return await this.#link.call(execute)
      } catch (error) {
        if (codeOf(error) !== 'network' && codeOf(error) !== 'unavailable') throw portError(error, 'consumer.failed')
        await this.#link.sleep(100)
      }
    }
  }

  #group() {
    return this.#core.group(this.#options.group)
  }
}
