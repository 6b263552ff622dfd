import { type Control, controlKey } from '../../src/core/control.ts'
import { decodeDead, redriveRecord } from '../../src/core/dead-letter.ts'
import { type Delivery, decodeDelivery } from '../../src/core/delivery.ts'
import type { LineState } from '../../src/core/lane-state.ts'
import { isOrderedLine, lineKeyOf, subscriptionOfLine } from '../../src/core/line.ts'
import { laneOf } from '../../src/core/partition.ts'
import { headerMap, type OutRecord } from '../../src/core/record.ts'
import type { PlannedOrder } from './features.ts'
import { pick, type Random, randomStream } from './random.ts'
import type { World } from './world.ts'

/** An order as the operator knows it. */
export interface Given {
  readonly key: string
  readonly order: Control
  /** Nobody can have seen it before. */
  readonly atMs: number
}

/** A process has read an order, or that it was taken back. */
export interface Applied {
  readonly key: string
  readonly order: string
  readonly process: string
  readonly incarnation: number
  readonly atMs: number
}

/** Whoever gives orders in a world, and the book of what was ordered. */
export class Operator {
  readonly given: Given[] = []
  readonly applied: Applied[] = []
  /** Delivery id → when it was sent again. Each at most once. */
  readonly redriven = new Map<string, number>()
  /** Head's delivery id → when its line was let go on without it. */
  readonly released = new Map<string, number>()
  readonly #world: World
  readonly #random: Random
  /** Subscriptions that are deleted some time are left alone: nothing would come of a redrive. */
  readonly #spared: ReadonlySet<string>
  /** First seen stopped, by line, head and since when: a head that is sent again may die again. */
  readonly #stopped = new Map<string, number>()
  /** Those that a release was given for. */
  readonly #let = new Set<string>()
  readonly #last = new Map<string, Control>()
  #tail: Promise<unknown> = Promise.resolve()
  #open = 0

  constructor(world: World, seed: number, spared: ReadonlySet<string>) {
    this.#world = world
    this.#random = randomStream(seed, 'operator')
    this.#spared = spared
    world.onApplied = (key, order, process, incarnation) =>
      void this.applied.push({ key, order, process, incarnation, atMs: world.clock.mono() })
  }

  /** Resolves when everything given so far is in the log. */
  idle(): Promise<unknown> {
    return this.#tail
  }

  /** Something is not in the log yet, or still to be ordered. */
  get busy(): boolean {
    return this.#open > 0
  }

  /** The world's clock gives the order then. */
  plan(atMs: number, order: PlannedOrder): void {
    this.#later(atMs, () => this.follow(order))
  }

  #later(inMs: number, act: () => void): void {
    this.#open++
    this.#world.clock.after(inMs, () => {
      this.#open--
      act()
    })
  }

  /** One after the other: an earlier order that is repeated must not take the place of a later one. */
  #append(record: OutRecord): void {
    this.#open++
    this.#tail = this.#tail.then(async () => {
      await this.#world.append(record)
      this.#open--
    })
  }

  follow(order: PlannedOrder): void {
    switch (order.t) {
      case 'tier': {
        const { tier: target, perSecond, forMs } = order
        const rate = perSecond === null ? { order: 'pause' as const } : { order: 'throttle' as const, perSecond }
        this.#give({ kind: 'tier', target, ...rate })
        this.#later(forMs, () => this.#give({ kind: 'tier', target, order: 'resume' }))
        return
      }
      case 'subscription': {
        const { id: target, forMs } = order
        this.#give({ kind: 'subscription', target, order: 'pause' })
        this.#later(forMs, () => this.#give({ kind: 'subscription', target, order: 'resume' }))
        return
      }
      case 'disable':
        this.#disable(order.id, order.forMs)
        return
      case 'cancel': {
        const waiting = this.#waiting()
        if (waiting.length > 0) this.#cancel(pick(this.#random, waiting).id, order.dead)
        return
      }
      case 'cancelLine':
        this.#cancelLine(order.dead)
        return
      case 'release':
        this.#releaseAny()
        return
      case 'redrive':
        this.#redriveSome(order.most)
        return
      default:
        order satisfies never
    }
  }

  /** Lets stopped lines go on, by a release or by sending their head again: asked again and again until none is left. */
  tend(): void {
    for (const { state, head } of this.#standing()) {
      if (state.state !== 'stopped' || this.#let.has(standOf(state))) continue
      const since = this.#stopped.get(standOf(state))
      const nowMs = this.#world.clock.mono()
      if (since === undefined) {
        this.#stopped.set(standOf(state), nowMs)
        if (!this.#mayRedrive(head) || this.#random() < 0.6 || !this.#redrive(head)) this.#release(state, head)
      } else if (nowMs - since > 20_000) this.#release(state, head)
    }
  }

  #disable(id: string, forMs: number): void {
    const world = this.#world
    if (world.subscriptions.get(id)?.status !== 'active') return
    world.disabled.add(id)
    void world.setStatus(id, 'disabled')
    this.#later(forMs, () => {
      if (world.subscriptions.get(id)?.status === 'disabled') void world.setStatus(id, 'active')
    })
  }

  #cancel(target: string, dead: boolean): void {
    this.#give({ kind: 'delivery', target, order: 'cancel', ...(dead ? { args: { to: 'dead' } } : {}) })
  }

  #cancelLine(dead: boolean): void {
    const lines = new Set<string>()
    for (const delivery of this.#waiting()) {
      const subscription = this.#world.subscriptions.get(delivery.subscriptionId)
      const key = subscription === undefined ? null : lineKeyOf(subscription, delivery)
      if (key !== null) lines.add(key)
    }
    if (lines.size === 0) return
    const target = pick(this.#random, [...lines])
    this.#give({ kind: 'line', target, order: 'cancel', ...(dead ? { args: { to: 'dead' } } : {}) })
  }

  #releaseAny(): void {
    const standing = this.#standing().filter(({ state }) => !this.#let.has(standOf(state)))
    if (standing.length === 0) return
    const { state, head } = pick(this.#random, standing)
    // Skipping a head that is retried cancels it; a dead one is settled already.
    if (state.state === 'blocked' && this.#random() < 0.5) this.#cancel(head, this.#random() < 0.3)
    else this.#release(state, head)
  }

  #release(state: LineState, head: string): void {
    const { line } = state
    this.#let.add(standOf(state))
    if (!this.released.has(head)) this.released.set(head, this.#world.clock.mono())
    // One order per line: the cancel it takes the place of still holds for what was before it.
    const before = this.#last.get(`line:${line}`)
    const { to = 'cancelled', cancelledMs } = before?.args ?? {}
    const since = before?.order === 'cancel' ? before.atMs : cancelledMs
    const args = { head, ...(since === undefined ? {} : { cancelledMs: since, to, cancelReason: 'before' }) }
    this.#give({ kind: 'line', target: line, order: 'resume', args })
  }

  #redriveSome(most: number): void {
    const ids = new Set<string>()
    for (const { record } of this.#world.broker.committed('dead')) ids.add(decodedId(record))
    const able = [...ids].filter((id) => this.#mayRedrive(id))
    for (let i = 0; i < most && able.length > 0; i++) {
      const [id] = able.splice(Math.floor(this.#random() * able.length), 1)
      this.#redrive(id as string)
    }
  }

  #mayRedrive(id: string): boolean {
    return !this.redriven.has(id) && !this.#last.has(`delivery:${id}`)
  }

  #redrive(id: string): boolean {
    const world = this.#world
    const found = world.broker.committed('dead').find(({ record }) => decodedId(record) === id)
    if (found?.record == null) return false
    const letter = decodeDead(found.partition, found.record)
    const subscription = world.subscriptions.get(letter.delivery?.subscriptionId ?? '')
    if (subscription === undefined || this.#spared.has(subscription.id)) return false
    const partition = laneOf(subscription, id, world.settings.lanes)
    const origin = { stream: `redrive:r${this.redriven.size}`, generation: 1, offset: 0 }
    const record = redriveRecord(letter, origin, 'deliveries', partition)
    if (record === null) return false
    this.redriven.set(id, world.clock.mono())
    this.#append(record)
    return true
  }

  #give(order: Pick<Control, 'kind' | 'target' | 'order'> & Partial<Control>): void {
    const { clock, broker } = this.#world
    const full: Control = { v: 1, by: 'operator', atMs: broker.process('operator').now(), ...order }
    const key = controlKey(full)
    this.#last.set(key, full)
    this.given.push({ key, order: full, atMs: clock.mono() })
    const value = Buffer.from(JSON.stringify(full))
    const record = { topic: 'control', partition: 0, key, value, headers: headerMap() }
    this.#append(record)
  }

  /** Deliveries of which nothing final is in the log, the newest hundred. */
  #waiting(): Delivery[] {
    const { broker, subscriptions } = this.#world
    const over = new Set<string>()
    for (const { record } of broker.committed('attempts')) {
      const attempt = record?.value == null ? null : JSON.parse(record.value.toString())
      if (attempt !== null && attempt.settlement !== 'scheduled') over.add(attempt.deliveryId)
    }
    const waiting = broker.committed('deliveries').flatMap(({ record }) => {
      const decoded = record === null ? null : decodeDelivery(record)
      return decoded?.ok === true ? [decoded.value] : []
    })
    return waiting
      .filter(({ id, subscriptionId }) => !over.has(id) && !this.redriven.has(id) && subscriptions.has(subscriptionId))
      .slice(-100)
  }

  #standing(): { readonly state: LineState; readonly head: string }[] {
    return this.#world.standingLines().flatMap((state) => {
      const { head, line } = state
      const known = this.#world.subscriptions.has(subscriptionOfLine(line))
      return head === null || state.state === 'draining' || !isOrderedLine(line) || !known ? [] : [{ state, head }]
    })
  }
}

function standOf({ line, head, sinceMs }: LineState): string {
  return `${line} ${head} ${sinceMs}`
}

function decodedId(record: { headers: Readonly<Record<string, Buffer>> } | null): string {
  return record?.headers['ht-id']?.toString() ?? ''
}
