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
 * A group member with the manners of our kafkajs adapter: eager rejoins with a bounded drain before each, no heartbeats
 * while draining, positions fetched anew after every join, everything paused after it.
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
  #leaseMonoMs: number
  #fetching: Fetching | null = null
  #end: ((how: Ending) => void) | null = null

  constructor(core: MemoryCore, link: Link, options: GroupConsumerOptions) {
    this.#core = core
    this.#link = link
    this.#options = options
    this.#leaseMonoMs = link.process.mono()
  }

  async start(handlers: GroupHandlers): Promise<void> {
    if (this.#handlers !== null) throw new HooktideError('internal', 'consumer was started before')
    this.#handlers = handlers
    await this.#retrying(() => {
      for (const topic of this.#options.topics) this.#core.logs(topic)
    })
    await new Promise<void>((resolve, reject) => {
      this.#run(handlers, resolve).catch((error) => {
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
    this.#fetching?.seek(partition, offset)
  }

  async commit(offsets: readonly GroupOffset[]): Promise<void> {
    const memberId = this.#memberId
    const generation = this.#generation
    if (memberId === null || this.#stopped) throw new HooktideError('consumer.failed', 'commit without membership')
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
    firstJoin()
  }

  /** Until a join and its sync have succeeded. A membership that is gone starts over as a new member, owning nothing. */
  async #join(): Promise<{ kept: boolean; partitions: readonly TopicPartition[] }> {
    let kept = this.#memberId !== null
    while (!this.#stopped) {
      try {
        const request = {
          memberId: this.#memberId,
          processId: this.#link.process.id,
          topics: this.#options.topics,
          assign: this.#options.assign,
          // Also what we may have lost is a claim: a later owner's is stronger.
          owned: this.#owned,
          ownedGeneration: this.#generation,
        }
        const joined = await this.#link.call(() => {
          this.#core.requireCoordinator()
          return this.#group().join(request)
        })
        // Nobody else can have owned what we keep only if no generation went by without us.
        if (joined.generation !== this.#generation + 1) kept = false
        this.#memberId = joined.memberId
        const sentMs = this.#link.process.mono()
        const partitions = await this.#link.call(() => this.#group().sync(joined.memberId, joined.generation))
        this.#generation = joined.generation
        this.#leaseMonoMs = sentMs
        return { kept, partitions }
      } catch (error) {
        const code = codeOf(error)
        if (code === 'unknown-member' || code === 'illegal-generation') {
          this.#memberId = null
          kept = false
        } else if (code === null || code === 'unknown-topic') throw portError(error, 'consumer.failed')
        else if (code !== 'rebalance-in-progress') await this.#link.sleep(50 + this.#core.latencyRandom() * 200)
      }
    }
    return { kept, partitions: [] }
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
    this.#owned = partitions
    this.#fetching = new Fetching(this.#core, this.#link, this.#options.group, partitions, {
      onBatch: (batch: FetchedBatch) => handlers.onBatch(batch),
      onUndecodable: (info) => handlers.onUndecodable(info),
    })
    handlers.onAssigned({ gained, kept: still, lost, generation: this.#generation })
  }

  /** Heartbeats until something ends the generation for us. */
  #member(): Promise<Ending> {
    return new Promise((resolve) => {
      let over = false
      this.#end = (how) => {
        over = true
        this.#end = null
        resolve(how)
      }
      const end = this.#end
      const memberId = this.#memberId as string
      const generation = this.#generation
      const beat = () => {
        if (over) return
        const sentMs = this.#link.process.mono()
        this.#link
          .call(() => {
            this.#core.requireCoordinator()
            this.#group().heartbeat(memberId, generation)
          })
          .then(
            () => {
              this.#leaseMonoMs = Math.max(this.#leaseMonoMs, sentMs)
              this.#link.process.after(this.#core.settings.heartbeatMs, beat)
            },
            (error) => {
              if (over) return
              const code = codeOf(error)
              if (code === 'rebalance-in-progress') end('rebalance')
              else if (code === 'unknown-member' || code === 'illegal-generation') end('lost')
              else this.#link.process.after(this.#core.settings.heartbeatMs, beat)
            },
          )
      }
      this.#link.process.after(this.#core.settings.heartbeatMs, beat)
    })
  }

  #revoke(handlers: GroupHandlers, lost: boolean): Promise<void> {
    const { process } = this.#link
    const deadlineMs = process.mono() + this.#options.drainMs
    return new Promise((resolve) => {
      const cancel = process.after(this.#options.drainMs, resolve)
      handlers.onRevoking({ deadlineMs, lost }).then(
        () => {
          cancel()
          resolve()
        },
        (error) => {
          cancel()
          handlers.onFatal(error)
          resolve()
        },
      )
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
