import { HooktideError, messageOf } from '../core/error.ts'
import type { GroupOffset, TopicPartition } from '../core/record.ts'
import type { Clock, GroupConsumer, GroupConsumerOptions, GroupHandlers, Observer } from '../ports.ts'
import type { KafkaClient } from './client.ts'
import { createGroupAssigner } from './group-assigner.ts'
import { drain, drainBoundMs } from './group-drain.ts'
import { groupError, troubleOf } from './group-errors.ts'
import { GroupFetcher } from './group-fetcher.ts'
import { GroupLink } from './group-link.ts'
import { GroupMember, type GroupTimes } from './group-member.ts'
import { Outage } from './group-outage.ts'
import { GroupPartitions } from './group-partitions.ts'
import { type GroupSettings, groupSettings } from './group-settings.ts'
import { FailureBudget, Wakeup } from './group-watchdog.ts'

/** Failures that should not happen, per minute, before the process is told to end. */
const maxFailures = 5
/** A topic created a moment ago, or a broker just started, may not know it yet. */
const topicGraceMs = 3000
const metadataMaxAgeMs = 30_000
/** Pause after a failure that is not expected to pass: with `maxFailures` it makes some 15 s. */
const failureMs = 3000
/** How long a stop waits for answers of the broker before it cuts the connection. */
const stopMs = 1000

export interface GroupConsumerDeps {
  readonly clock: Clock
  readonly observer: Observer
}

/**
 * A group member on kafkajs's connections and codecs, but not on its run loop (docs/decisions/group-consumer.md).
 * Throws `config.invalid` when the drain does not fit into the session.
 */
export function createGroupConsumer(
  client: KafkaClient,
  options: GroupConsumerOptions,
  deps: GroupConsumerDeps,
): GroupConsumer {
  return new KafkaGroupConsumer(client, options, deps)
}

/** What the run loop does next. */
type Next = 'join' | 'attend'

class KafkaGroupConsumer implements GroupConsumer {
  readonly #client: KafkaClient
  readonly #options: GroupConsumerOptions
  readonly #clock: Clock
  readonly #observer: Observer
  readonly #settings: GroupSettings
  readonly #times: GroupTimes
  /** Deadline of one request: late enough to be sure, early enough to keep the membership over a fresh link. */
  readonly #requestMs: number
  readonly #partitions = new GroupPartitions()
  readonly #member: GroupMember
  readonly #wakeup: Wakeup
  readonly #budget: FailureBudget
  readonly #outage: Outage
  #handlers: GroupHandlers | undefined
  #fetcher: GroupFetcher | undefined
  #link: GroupLink | undefined
  #next: Next = 'join'
  /** The pipeline holds partitions that it has not been asked to give up yet. */
  #undrained = false
  #loop: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  #ended = false
  #started = false
  /** Set by whoever sees that the link is no good; the run loop takes it from here. */
  #failure: unknown

  constructor(client: KafkaClient, options: GroupConsumerOptions, deps: GroupConsumerDeps) {
    this.#settings = groupSettings(client.options.group)
    const { sessionMs, heartbeatMs } = this.#settings
    if (options.drainMs > sessionMs - 2000)
      throw new HooktideError(
        'config.invalid',
        `drainMs of group ${options.group} is ${options.drainMs} ms, at most ${sessionMs - 2000} ms fit into a session of ${sessionMs} ms`,
        {
          remedy: 'Lower the drain time or raise the session time-out',
        },
      )
    this.#client = client
    this.#options = options
    this.#clock = deps.clock
    this.#observer = deps.observer
    this.#requestMs = Math.max(1000, Math.floor(sessionMs / 3))
    this.#times = { sessionMs, heartbeatMs, rebalanceMs: Math.max(sessionMs, options.drainMs + heartbeatMs + 5000) }
    this.#member = new GroupMember(
      deps.clock,
      options.group,
      this.#times,
      createGroupAssigner(options.assign, options.topics),
    )
    this.#wakeup = new Wakeup(deps.clock)
    this.#budget = new FailureBudget(deps.clock, maxFailures)
    this.#outage = new Outage(deps.clock, deps.observer, options.group)
  }

  start(handlers: GroupHandlers): Promise<void> {
    if (this.#loop !== undefined || this.#ended)
      return Promise.reject(
        new HooktideError('usage', `Consumer of group ${this.#options.group} was started or stopped before`),
      )
    this.#handlers = handlers
    this.#fetcher = new GroupFetcher(
      this.#partitions,
      this.#settings,
      { clock: this.#clock, observer: this.#observer, group: this.#options.group },
      handlers,
      {
        broken: (link, error) => {
          if (this.#link !== link) return
          this.#failure = error
          this.#wakeup.fire()
        },
        fatal: (error) => this.#fatal(error),
      },
    )
    return new Promise((resolve, reject) => {
      this.#loop = this.#run(resolve, reject)
    })
  }

  pause(partitions: readonly TopicPartition[]): void {
    for (const at of partitions) {
      const owned = this.#partitions.get(at)
      if (owned !== undefined) owned.paused = true
    }
  }

  resume(partitions: readonly TopicPartition[]): void {
    for (const at of partitions) {
      const owned = this.#partitions.get(at)
      if (owned === undefined) continue
      owned.paused = false
      if (owned.position === null)
        this.#observer.log('error', 'consumer.resumed_without_seek', { group: this.#options.group, ...at })
    }
    this.#fetcher?.pump()
  }

  seek(at: TopicPartition, offset: number): void {
    if (!Number.isSafeInteger(offset) || offset < 0)
      throw new HooktideError('usage', `Seek of ${at.topic}/${at.partition} to ${offset}: an offset is an integer ≥ 0`)
    this.#partitions.seek(at, offset)
    this.#fetcher?.pump()
  }

  async commit(offsets: readonly GroupOffset[]): Promise<void> {
    if (offsets.length === 0) return
    if (this.#ended)
      throw new HooktideError('usage', `Commit of group ${this.#options.group} after stop: commit first, then stop`)
    for (const { topic, partition, offset } of offsets) {
      if (offset === null || offset < 0 || this.#partitions.get({ topic, partition }) === undefined)
        throw new HooktideError(
          'consumer.failed',
          `Commit of ${topic}/${partition} at ${offset} refused: not owned, or no offset`,
        )
    }
    await this.#member.commit(this.#link, offsets)
  }

  leaseAgeMs(): number {
    return this.#member.leaseAgeMs()
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

  #end(): void {
    this.#ended = true
    this.#partitions.suspend()
    this.#fetcher?.use(undefined)
    this.#wakeup.fire()
  }

  #fatal(error: unknown): void {
    if (this.#ended) return
    this.#end()
    const cause = groupError(error, 'go on', this.#options.group)
    this.#observer.log('error', 'consumer.fatal', { group: this.#options.group, reason: cause.message })
    try {
      this.#handlers?.onFatal(cause)
    } catch (second) {
      this.#observer.log('error', 'consumer.handler_failed', { group: this.#options.group, reason: messageOf(second) })
    }
  }

  async #run(joined: () => void, refused: (error: Error) => void): Promise<void> {
    const begunMono = this.#clock.mono()
    while (!this.#ended) {
      try {
        const link = await this.#connected()
        if (this.#ended) break
        if (this.#next === 'join') {
          await this.#join(link)
          this.#started ||= this.#member.active
          if (this.#started) joined()
        } else {
          await this.#attend(link)
        }
        this.#outage.over()
      } catch (error) {
        if (this.#ended) break
        const final = !this.#started && this.#isFinal(error, begunMono)
        if (final) {
          this.#end()
          this.#dropLink()
          return refused(groupError(error, 'start', this.#options.group))
        }
        await this.#recover(error)
      }
    }
    if (!this.#started)
      refused(
        new HooktideError('consumer.failed', `Consumer of group ${this.#options.group} was stopped before it joined`),
      )
  }

  /** Drain, JoinGroup, SyncGroup, tell the pipeline, fetch. */
  async #join(link: GroupLink): Promise<void> {
    const { group } = this.#options
    this.#partitions.suspend()
    await this.#drain(link)
    if (this.#ended) return
    const { assigned, generation, continuous } = await this.#member.join(link, this.#partitions.all())
    this.#next = 'attend'
    this.#failure = undefined
    if (this.#ended) return
    const change = this.#partitions.replace(assigned, continuous)
    this.#undrained = true
    this.#observer.log('info', 'consumer.joined', {
      group,
      generation,
      gained: change.gained.length,
      kept: change.kept.length,
      lost: change.lost.length,
    })
    this.#observer.count('consumer_rebalances', 1, { group })
    try {
      this.#handlers?.onAssigned({ ...change, generation })
    } catch (error) {
      this.#fatal(error)
      return
    }
    this.#fetcher?.use(link)
    this.#fetcher?.pump()
  }

  /** Before the first JoinGroup after an assignment, while the old generation can still commit. */
  async #drain(link: GroupLink): Promise<void> {
    if (!this.#undrained || this.#handlers === undefined) return
    this.#undrained = false
    const { heartbeatMs } = this.#times
    await drain(
      this.#handlers,
      {
        clock: this.#clock,
        observer: this.#observer,
        group: this.#options.group,
        wakeup: this.#wakeup,
        ended: () => this.#ended,
        beat: async () => {
          try {
            await this.#member.heartbeat(link)
          } catch (error) {
            if (troubleOf(error) === 'evicted') this.#member.lose(error)
          }
          return this.#member.active
        },
      },
      { boundMs: drainBoundMs(this.#options.drainMs, this.#times), heartbeatMs, lost: !this.#member.active },
    )
  }

  /** One heartbeat interval of an ordinary life. Returns when something else is due. */
  async #attend(link: GroupLink): Promise<void> {
    await this.#wakeup.wait(this.#times.heartbeatMs)
    if (this.#ended) return
    const failure = this.#failure
    this.#failure = undefined
    if (failure !== undefined) throw failure
    await this.#member.heartbeat(link)
    this.#fetcher?.use(link)
    if (link.metadataAgeMs() > metadataMaxAgeMs) await this.#refreshMetadata(link)
  }

  /** Added partitions (of an events topic; internal topics keep their number) need a rebalance to get an owner. */
  async #refreshMetadata(link: GroupLink): Promise<void> {
    const before = link.counts()
    await link.refresh()
    for (const [topic, now] of link.counts()) {
      if (now <= (before.get(topic) ?? now)) continue
      this.#observer.log('warn', 'consumer.partitions_added', { group: this.#options.group, topic, now })
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
        this.#partitions.suspend()
        if (this.#member.active)
          this.#observer.log('warn', 'consumer.evicted', { group: this.#options.group, reason: messageOf(error) })
        this.#member.lose(error)
        this.#next = 'join'
        return
      case 'coordinator':
        this.#link?.forgetCoordinator(this.#options.group, error)
        return this.#wakeup.wait(this.#outage.failed(error))
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

  /** What a start must not wait for: nobody heals it but a person. */
  #isFinal(error: unknown, begunMono: number): boolean {
    const trouble = troubleOf(error)
    return trouble === 'forbidden' || (trouble === 'topic' && this.#clock.mono() - begunMono > topicGraceMs)
  }

  #dropLink(): void {
    const link = this.#link
    this.#link = undefined
    this.#failure = undefined
    this.#fetcher?.use(undefined)
    link?.close()
  }
}
