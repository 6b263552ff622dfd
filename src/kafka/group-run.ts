import { HooktideError, messageOf } from '../core/error.ts'
import type { GroupOffset } from '../core/record.ts'
import type { Clock, GroupConsumerOptions, GroupHandlers, Observer } from '../ports.ts'
import type { KafkaClient } from './client.ts'
import { createGroupAssigner } from './group-assigner.ts'
import { drain, drainBoundMs } from './group-drain.ts'
import { groupError, isFinal, troubleOf } from './group-errors.ts'
import { GroupFetcher } from './group-fetcher.ts'
import { GroupLink } from './group-link.ts'
import { GroupMember, type GroupTimes } from './group-member.ts'
import { Outage } from './group-outage.ts'
import { GroupPartitions } from './group-partitions.ts'
import type { GroupSettings } from './group-settings.ts'
import { FailureBudget, Wakeup } from './group-watchdog.ts'

/** Failures that should not happen, per minute, before the process is told to end; with the pause between them some 15 s. */
const maxFailures = 5
const failureMs = 3000
/** How long a stop waits for answers of the broker before it cuts the connection. */
const stopMs = 1000

/**
 * The life of a group member as one loop: connect, (drain, join), heartbeat, and after each failure what it asks for.
 * Nothing here ends by itself but with `onFatal` or `stop`.
 */
export class GroupRun {
  readonly partitions = new GroupPartitions()
  readonly #client: KafkaClient
  readonly #options: GroupConsumerOptions
  readonly #settings: GroupSettings
  readonly #clock: Clock
  readonly #observer: Observer
  readonly #times: GroupTimes
  readonly #member: GroupMember
  readonly #wakeup: Wakeup
  readonly #budget: FailureBudget
  readonly #outage: Outage
  /** Deadline of one request: late enough to be sure, early enough to keep the membership over a fresh link. */
  readonly #requestMs: number
  #handlers: GroupHandlers | undefined
  #fetcher: GroupFetcher | undefined
  #link: GroupLink | undefined
  #next: 'join' | 'attend' = 'join'
  /** The pipeline holds partitions that it has not been asked to give up yet. */
  #undrained = false
  /** Set by a fetch that found the link broken; the loop takes it from here. */
  #failure: unknown
  #loop: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  #started = false
  #ended = false

  constructor(
    client: KafkaClient,
    options: GroupConsumerOptions,
    settings: GroupSettings,
    deps: { readonly clock: Clock; readonly observer: Observer },
  ) {
    const { clock, observer } = deps
    const { sessionMs, heartbeatMs } = settings
    this.#client = client
    this.#options = options
    this.#settings = settings
    this.#clock = clock
    this.#observer = observer
    this.#requestMs = Math.max(1000, Math.floor(sessionMs / 3))
    this.#times = { sessionMs, heartbeatMs, rebalanceMs: Math.max(sessionMs, options.drainMs + heartbeatMs + 5000) }
    const assigner = createGroupAssigner(options.assign, options.topics)
    this.#member = new GroupMember(clock, options.group, this.#times, assigner)
    this.#wakeup = new Wakeup(clock)
    this.#budget = new FailureBudget(clock, maxFailures)
    this.#outage = new Outage(clock, observer, options.group)
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Resolves with the first join; rejects for what nobody but a person heals. */
  start(handlers: GroupHandlers): Promise<void> {
    const { group } = this.#options
    if (this.#loop !== undefined || this.#ended)
      return Promise.reject(new HooktideError('usage', `Consumer of group ${group} was started or stopped before`))
    this.#handlers = handlers
    const deps = { clock: this.#clock, observer: this.#observer, group }
    this.#fetcher = new GroupFetcher(this.partitions, this.#settings, deps, handlers, {
      broken: (link, error) => {
        if (this.#link !== link) return
        this.#failure = error
        this.#wakeup.fire()
      },
      fatal: (error) => this.#fatal(error),
    })
    return new Promise((resolve, reject) => {
      this.#loop = this.#live(handlers, resolve, reject)
    })
  }

  pump(): void {
    this.#fetcher?.pump()
  }

  leaseAgeMs(): number {
    return this.#member.leaseAgeMs()
  }

  commit(offsets: readonly GroupOffset[]): Promise<void> {
    return this.#member.commit(this.#link, offsets)
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    const joining = this.#next === 'join'
    this.#end()
    if (this.#loop === undefined) return
    // A JoinGroup may wait for other members, a broken connection for an answer: neither is worth waiting for.
    if (joining || this.#outage.going) this.#dropLink()
    const cancel = this.#clock.after(stopMs, () => this.#dropLink())
    await this.#loop
    cancel()
    if (this.#member.known && !this.#outage.going) await this.#leave()
    this.#dropLink()
  }

  /** A courtesy that saves the group a session time-out: tried once. */
  async #leave(): Promise<void> {
    const cancel = this.#clock.after(stopMs, () => this.#dropLink())
    try {
      await this.#member.leave(await this.#connected())
    } catch (error) {
      this.#observer.log('debug', 'consumer.leave_failed', { group: this.#options.group, reason: messageOf(error) })
    } finally {
      cancel()
    }
  }

  #end(): void {
    this.#ended = true
    this.partitions.suspend()
    this.#fetcher?.use(undefined)
    this.#wakeup.fire()
  }

  #fatal(error: unknown): void {
    if (this.#ended) return
    this.#end()
    const { group } = this.#options
    const cause = groupError(error, 'go on', group)
    this.#observer.log('error', 'consumer.fatal', { group, reason: cause.message })
    try {
      this.#handlers?.onFatal(cause)
    } catch (second) {
      this.#observer.log('error', 'consumer.handler_failed', { group, reason: messageOf(second) })
    }
  }

  async #live(handlers: GroupHandlers, joined: () => void, refused: (error: Error) => void): Promise<void> {
    const { group } = this.#options
    const begunMono = this.#clock.mono()
    while (!this.#ended) {
      try {
        const link = await this.#connected()
        if (this.#ended) break
        if (this.#next === 'attend') await this.#attend(link)
        else if (await this.#join(link, handlers)) {
          this.#started = true
          joined()
        }
        this.#outage.over()
      } catch (error) {
        if (this.#ended) break
        if (!this.#started && isFinal(error, this.#clock.mono() - begunMono)) {
          this.#end()
          this.#dropLink()
          return refused(groupError(error, 'start', group))
        }
        await this.#recover(error)
      }
    }
    // Without effect when it had joined.
    refused(new HooktideError('consumer.failed', `Consumer of group ${group} was stopped before it joined`))
  }

  async #connected(): Promise<GroupLink> {
    // Known before it is connected, so that a stop can cut it.
    this.#link ??= new GroupLink(this.#client, this.#options.topics, this.#requestMs)
    const link = this.#link
    if (!link.ready) {
      await link.refresh()
      // Whether we are still a member is the first thing to ask on a new connection.
      this.#wakeup.fire()
    }
    return link
  }

  /** Drain, JoinGroup, SyncGroup, tell the pipeline, fetch. False when a stop came in between. */
  async #join(link: GroupLink, handlers: GroupHandlers): Promise<boolean> {
    const { group } = this.#options
    this.partitions.suspend()
    await this.#drain(link, handlers)
    if (this.#ended) return false
    const { assigned, generation, continuous } = await this.#member.join(link, this.partitions.all())
    this.#next = 'attend'
    this.#failure = undefined
    if (this.#ended) return false
    const change = this.partitions.replace(assigned, continuous)
    this.#undrained = true
    const { gained, kept, lost } = change
    const sizes = { gained: gained.length, kept: kept.length, lost: lost.length }
    this.#observer.log('info', 'consumer.joined', { group, generation, ...sizes })
    this.#observer.count('consumer_rebalances', 1, { group })
    try {
      handlers.onAssigned({ ...change, generation })
    } catch (error) {
      this.#fatal(error)
      return false
    }
    this.#fetcher?.use(link)
    this.#fetcher?.pump()
    return true
  }

  /** Before the first JoinGroup after an assignment, while the old generation can still commit. */
  async #drain(link: GroupLink, handlers: GroupHandlers): Promise<void> {
    if (!this.#undrained) return
    this.#undrained = false
    const { group, drainMs } = this.#options
    await drain(
      handlers,
      {
        ...{ clock: this.#clock, observer: this.#observer, group, wakeup: this.#wakeup },
        ended: () => this.#ended,
        beat: () => this.#member.beat(link),
      },
      { boundMs: drainBoundMs(drainMs, this.#times), heartbeatMs: this.#times.heartbeatMs, lost: !this.#member.active },
    )
  }

  /** One heartbeat interval of an ordinary life. */
  async #attend(link: GroupLink): Promise<void> {
    await this.#wakeup.wait(this.#times.heartbeatMs)
    if (this.#ended) return
    const failure = this.#failure
    this.#failure = undefined
    if (failure !== undefined) throw failure
    await this.#member.heartbeat(link)
    this.#fetcher?.use(link)
    if (link.metadataAgeMs() < this.#settings.metadataMaxAgeMs) return
    // Of an events topic; internal topics keep their number. Without a rebalance they would have no owner.
    for (const topic of await link.grown()) {
      this.#observer.log('warn', 'consumer.partitions_added', { group: this.#options.group, topic })
      this.#next = 'join'
    }
  }

  /** After a failure: sets what is to be done next, and waits before it where haste would help nobody. */
  async #recover(error: unknown): Promise<void> {
    switch (troubleOf(error)) {
      case 'rebalance':
        this.#next = 'join'
        return
      case 'evicted':
        this.partitions.suspend()
        if (this.#member.active)
          this.#observer.log('warn', 'consumer.evicted', { group: this.#options.group, reason: messageOf(error) })
        this.#member.lose(error)
        this.#next = 'join'
        return
      case 'coordinator':
        this.#link?.forgetCoordinator(this.#options.group, error)
        await this.#wakeup.wait(this.#outage.failed(error, 'passing'))
        this.#wakeup.fire()
        return
      case 'metadata':
      case 'topic':
      case 'unavailable':
        this.#dropLink()
        return this.#wakeup.wait(this.#outage.failed(error))
      case 'offset':
      case 'forbidden':
      case 'unexpected':
        this.#dropLink()
        this.#outage.failed(error)
        if (this.#budget.spend()) return this.#fatal(error)
        return this.#wakeup.wait(failureMs)
    }
  }

  #dropLink(): void {
    const link = this.#link
    this.#link = undefined
    this.#failure = undefined
    this.#fetcher?.use(undefined)
    link?.close()
  }
}
