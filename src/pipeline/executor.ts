import { FairQueue } from '../core/fair-queue.ts'
import type { Clock } from '../ports.ts'
import { type Item, itemOf, quantumBytes } from './executor-item.ts'
import type { ExecutorLimits } from './executor-limits.ts'
import type { Target } from './executor-target.ts'
import { HeldWorks } from './held-works.ts'
import { OriginSlots } from './origin-slots.ts'
import { Paces } from './paces.ts'
import { SlowShare } from './slow-share.ts'
import type { Work } from './work.ts'

/**
 * The process-wide bound on open POSTs, fair between subscriptions. It starts works and is told when they end; what an
 * outcome means is the lane's business. Everything here is synchronous: no promise per queued work.
 */
export class Executor {
  readonly #limits: ExecutorLimits
  readonly #target: (subscriptionId: string) => Target
  readonly #run: (work: Work) => void
  readonly #first = new FairQueue<Item>(quantumBytes)
  readonly #retry = new FairQueue<Item>(quantumBytes)
  readonly #job = new FairQueue<Item>(quantumBytes)
  readonly #queues = [this.#first, this.#retry, this.#job]
  readonly #perSubscription = new Map<string, number>()
  readonly #origins: OriginSlots
  readonly #open = new Map<Work, { origin: string | null; item: Item }>()
  /**
   * Deliveries and ordered lines with an open POST. A lane that was lost and came back repeats what was open: not before
   * the POST of its former epoch has ended here, or one delivery has two, or an ordered line does.
   */
  readonly #gates = new Set<string>()
  readonly #paces: Paces
  readonly #slow: SlowShare
  readonly #held: HeldWorks
  readonly #waitMs: (work: Work) => number
  readonly #clock: Clock
  #openBytes = 0
  #openLater = 0
  #completed = 0
  #suspended = false
  #pumping = false

  /**
   * `run` makes the POST; it must not throw and must lead to `finished(work)` exactly once. `waitMs`: how long a work must
   * wait for what only it needs; 0: it can start.
   */
  constructor(
    limits: ExecutorLimits,
    clock: Clock,
    target: (subscriptionId: string) => Target,
    run: (work: Work) => void,
    waitMs: (work: Work) => number = () => 0,
  ) {
    this.#limits = limits
    this.#clock = clock
    this.#origins = new OriginSlots(limits.maxPerOrigin, (subscriptionId) => this.#wake(subscriptionId))
    this.#slow = new SlowShare(limits.maxInFlight)
    this.#paces = new Paces(clock, limits.maxPerOriginPerSecond, (subscriptionId) => this.wake(subscriptionId))
    this.#target = target
    this.#run = run
    this.#waitMs = waitMs
    this.#held = new HeldWorks(clock, () => this.retryHeld())
  }

  get inFlight(): number {
    return this.#open.size
  }

  /** Most POSTs that may be open. */
  get maxInFlight(): number {
    return this.#limits.maxInFlight
  }

  get inFlightBytes(): number {
    return this.#openBytes
  }

  /** POSTs ended since the start, whatever they came to. */
  get completed(): number {
    return this.#completed
  }

  /** Works that could start but for the bounds. */
  get ready(): number {
    return this.#queues.reduce((size, queue) => size + queue.size, this.#held.size)
  }

  /** Those of them that do not wait for a rate: if none of these ends for long, something is wrong here. */
  get startable(): number {
    let startable = this.ready - this.#held.size
    for (const id of this.#paces.waiting()) for (const queue of this.#queues) startable -= queue.sizeOf(id)
    return startable
  }

  /** May what has begun still be POSTed? */
  get confirmed(): boolean {
    return !this.#suspended && this.#limits.leased()
  }

  /** Earliest `readyAtMs` of what waits here; null when nothing does. */
  oldestReadyMs(): number | null {
    let oldest: number | null = null
    for (const { readyAtMs } of this.waiting()) if (oldest === null || readyAtMs < oldest) oldest = readyAtMs
    return oldest
  }

  /** Per subscription that has something waiting, ranks apart: since when. */
  *waiting(): Iterable<{ readonly subscriptionId: string; readonly readyAtMs: number }> {
    for (const queue of this.#queues)
      for (const { flow, work } of queue.heads()) yield { subscriptionId: flow, readyAtMs: work.readyAtMs }
    yield* this.#held.waiting()
  }

  offer(work: Work): void {
    this.#push(work)
    this.pump()
  }

  /** What works were held back for may be there again. */
  retryHeld(): void {
    for (const work of this.#held.take()) this.#push(work)
    this.pump()
  }

  #push(work: Work): void {
    const item = itemOf(work)
    const queues = { first: this.#first, retry: this.#retry, job: this.#job }
    queues[item.rank].push(item)
  }

  finished(work: Work): void {
    const entry = this.#open.get(work)
    if (entry === undefined) return
    this.#completed++
    this.#open.delete(work)
    for (const gate of entry.item.gates) this.#gates.delete(gate)
    this.#openBytes -= work.bytes
    if (entry.item.rank !== 'first') this.#openLater--
    const subscriptionId = work.delivery.subscriptionId
    const left = (this.#perSubscription.get(subscriptionId) ?? 1) - 1
    if (left === 0) this.#perSubscription.delete(subscriptionId)
    else this.#perSubscription.set(subscriptionId, left)
    const room = this.#slow.ended(subscriptionId, work, this.#clock.mono())
    // First who waits for the origin, then who had the place: one look at the queue serves both.
    const { origin } = entry
    if (origin !== null) this.#origins.leave(origin)
    this.#wake(subscriptionId)
    this.pump()
    if (origin !== null) while (!this.#suspended && this.#origins.again(origin)) this.pump()
    if (room) this.#offerRoom()
  }

  /** Takes back what waits here of an owner (of one subscription, if given). Open POSTs end by themselves. */
  withdraw(owner: Work['owner'], subscriptionId?: string): Work[] {
    const mine = (item: Item) => item.work.owner === owner
    const queued = this.#queues
      .flatMap((queue) => (subscriptionId === undefined ? queue.remove(mine) : queue.removeFrom(subscriptionId, mine)))
      .map((item) => item.work)
    return queued.concat(this.#held.remove(owner, subscriptionId))
  }

  /** Before a rejoin and at shutdown: nothing new starts. */
  suspend(): void {
    this.#suspended = true
  }

  resume(): void {
    this.#suspended = false
    this.#origins.wakeAll()
    this.pump()
  }

  /** Limits of a subscription may have changed, or the lease is confirmed again. */
  wake(subscriptionId: string): void {
    this.#wake(subscriptionId)
    this.pump()
  }

  pump(): void {
    // `begin` and `run` may call back into `offer` and `finished`: one loop serves them all.
    if (this.#pumping || this.#suspended) return
    this.#pumping = true
    try {
      while (
        !this.#suspended &&
        this.#limits.leased() &&
        this.#open.size < this.#limits.maxInFlight &&
        this.#openBytes < this.#limits.maxInFlightBytes
      ) {
        const item = this.#take()
        if (item === null) break
        this.#begin(item)
      }
    } finally {
      this.#pumping = false
    }
  }

  #take(): Item | null {
    const { maxInFlight, retryShare } = this.#limits
    const laterMayRun = this.#first.size === 0 || this.#openLater < Math.max(1, Math.floor(maxInFlight * retryShare))
    // They use their share first: first attempts alone could keep every slot for ever.
    if (laterMayRun) {
      const item = this.#retry.take(this.#may) ?? this.#job.take(this.#may)
      if (item !== null) return item
    }
    return this.#first.take(this.#may)
  }

  readonly #may = (item: Item): 'run' | 'set-aside' => {
    for (const gate of item.gates) if (this.#gates.has(gate)) return 'set-aside'
    const target = this.#target(item.flow)
    if (target === null) return 'run'
    if ((this.#perSubscription.get(item.flow) ?? 0) >= Math.min(target.maxInFlight, this.#limits.maxPerSubscription))
      return 'set-aside'
    if (!this.#origins.allows(target.origin, item.flow)) return 'set-aside'
    if (target.ready?.() === false) return 'set-aside'
    if (!this.#slow.allows(item.flow, this.#clock.mono())) return 'set-aside'
    return this.#paces.allows(item.flow, item.work.owner, target) ? 'run' : 'set-aside'
  }

  #begin(item: Item): void {
    const { work } = item
    const waitMs = this.#waitMs(work)
    if (waitMs > 0) {
      this.#held.hold(work, waitMs)
      return
    }
    if (work.owner.begin(work) === 'dropped') return
    const target = this.#target(item.flow)
    this.#slow.started(item.flow, work, this.#clock.mono())
    if (target !== null) this.#paces.take(item.flow, work.owner, target)
    const origin = target?.origin ?? null
    for (const gate of item.gates) this.#gates.add(gate)
    this.#open.set(work, { origin, item })
    this.#openBytes += work.bytes
    if (item.rank !== 'first') this.#openLater++
    this.#perSubscription.set(item.flow, (this.#perSubscription.get(item.flow) ?? 0) + 1)
    if (origin !== null) this.#origins.take(origin)
    this.#run(work)
  }

  /** One that is woken may find nothing to start: then the room is the next one's. Each is asked once. */
  #offerRoom(): void {
    for (let turns = this.#slow.waiting; turns > 0; turns--) {
      const next = this.#slow.takeWaiting()
      if (next === null) return
      this.wake(next)
    }
  }

  #wake(subscriptionId: string): void {
    for (const queue of this.#queues) queue.wake(subscriptionId)
  }
}
