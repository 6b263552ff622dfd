import { claimFor, claimHeader, encodeClaim } from '../../src/core/claim.ts'
import { decodeDelivery } from '../../src/core/delivery.ts'
import { MatchIndex, patternMatches } from '../../src/core/match-index.ts'
import { headerMap } from '../../src/core/record.ts'
import type { Subscription } from '../../src/core/subscription.ts'
import { unleash } from './chaos.ts'
import { delivers } from './endpoints.ts'
import { collectEvidence, type Evidence, type Expected, type Operated } from './evidence.ts'
import { bodyOf, type Marked, marksOf, type Shape } from './features.ts'
import { checkJournal } from './journal.ts'
import { claimKeyOf } from './names.ts'
import { Operator } from './operator.ts'
import { type Mode, type Plan, type PlannedSubscription, planOf } from './plan.ts'
import { layout, type Mistake, spanOf, tierDelays, World } from './world.ts'

export interface RunOptions {
  readonly faults?: readonly string[] | null
  readonly mistake?: Mistake
  readonly verbose?: (line: string) => void
}

export interface Verdict {
  readonly seed: number
  readonly mode: Mode
  readonly problems: readonly string[]
  readonly evidence: Evidence
  readonly simulatedMs: number
  readonly timers: number
  readonly posts: number
}

interface Produced {
  readonly name: string
  readonly partition: number
  offset: number
  /** Life of the events topic: it may be recreated. */
  readonly life: number
  wanted: readonly { subscription: Subscription; maybe: boolean }[]
  readonly key: string | null
  readonly sequence: number
  readonly mark: Marked
}

/** One seed from beginning to end: a world, its faults, their end, and the verdict. */
export async function runSeed(seed: number, mode: Mode, options: RunOptions = {}): Promise<Verdict> {
  return new Run(planOf(seed, mode, options.faults ?? null), options).run()
}

class Run {
  readonly #plan: Plan
  readonly #world: World
  readonly #operator: Operator
  readonly #mark: (key: string | null) => Marked
  /** By key and sequence. */
  readonly #events = new Map<string, { readonly mark: Marked; readonly type: string }>()
  readonly #problems: string[] = []
  readonly #produced: Produced[] = []
  readonly #sequences = new Map<string, number>()
  readonly #reordered = new Set<string>()
  /** Subscriptions whose set of events is not known exactly: deleted, disabled. */
  readonly #uncertain = new Set<string>()
  readonly #partitionTails = new Map<number, Promise<unknown>>()
  #life = 0
  /** Losses of the topic's former life. */
  #lossesBefore = 0
  #cutOff = false

  constructor(plan: Plan, options: RunOptions) {
    this.#plan = plan
    const { verbose } = options
    this.#world = new World({
      seed: plan.seed,
      lanes: plan.lanes,
      eventPartitions: plan.eventPartitions,
      workers: plan.workers,
      ...(options.mistake === undefined ? {} : { mistake: options.mistake }),
      broker: { faults: plan.faults, maxFetchRecords: plan.maxFetchRecords },
      settings: {
        policy: { maxAttempts: plan.maxAttempts, baseMs: 500, factor: 3, capMs: 6_000, retryAfterCapMs: 10_000 },
        ...(plan.small ? small : {}),
        ...(plan.circuits ? { circuit: { ...breaker }, deadCredit: 3 } : {}),
      },
      ...(verbose === undefined
        ? {}
        : {
            onLog: (atMs, worker, level, name, fields) =>
              verbose(`${atMs.toFixed(1)} ${worker} ${level} ${name} ${JSON.stringify(fields)}`),
          }),
    })
    const { seed, mode, features } = plan
    this.#operator = new Operator(this.#world, seed, this.#uncertain)
    this.#mark = marksOf(seed, mode, features.claims)
  }

  async run(): Promise<Verdict> {
    const plan = this.#plan
    const world = this.#world
    const { clock } = world
    world.onGone = (id) => {
      this.#uncertain.add(id)
      void world.setStatus(id, 'disabled')
    }
    const first = plan.subscriptions.filter(({ atMs }) => atMs < 0).map((s) => this.#subscribe(s))
    await clock.drive(Promise.all(first))
    const endFaults = unleash(world.broker, spared)
    world.startAll()
    const beginMs = clock.mono()
    const at = (ms: number, fn: () => void) => clock.after(Math.max(0, beginMs + ms - clock.mono()), fn)
    for (const s of plan.subscriptions) if (s.atMs >= 0) at(s.atMs, () => void this.#subscribe(s))
    for (const { atMs, subscription, change } of plan.changes) at(atMs, () => this.#change(subscription, change))
    for (const event of plan.events) at(event.atMs, () => this.#produce(event))
    for (const { atMs, worker } of plan.restarts) {
      at(atMs, () => {
        const who = world.workers[worker]
        if (who !== undefined) void world.restart(who, 300)
      })
    }
    const { orders, storeAway } = plan.features
    for (const order of orders) this.#operator.plan(order.atMs, order)
    if (storeAway !== null) {
      at(storeAway.fromMs, () => {
        world.objects.away = true
      })
      at(storeAway.toMs, () => {
        world.objects.away = false
      })
    }
    let recreated = Promise.resolve()
    if (plan.recreateAtMs !== null) {
      at(plan.recreateAtMs, () => {
        recreated = this.#recreate()
      })
    }
    await clock.advance(plan.faultsUntilMs)
    endFaults()
    await clock.drive(recreated)
    await this.#settleSubscriptions()
    const ended = await this.#drain()
    if (!ended)
      this.#problems.push(
        `stuck: not everything is final ${plan.boundMs / 1000} s after the last fault, or nothing moves any more`,
      )
    const evidence = this.#evidence()
    const problems = [...this.#problems, ...world.fatal.map((f) => `fatal: ${f}`)]
    problems.push(...checkJournal(evidence, { ended: true }))
    return {
      seed: plan.seed,
      mode: plan.mode,
      problems,
      evidence,
      simulatedMs: clock.mono(),
      timers: clock.fired,
      posts: world.receiver.posts.length,
    }
  }

  #subscribe({ id, ordering, types, endpoint, kind, maxInFlight }: PlannedSubscription): Promise<void> {
    const url = `https://${id}.test/${kind}`
    this.#world.receiver.serve(url, id, endpoint)
    const more = this.#plan.features.wishes.get(id)?.more ?? {}
    const limit = maxInFlight === undefined ? {} : { maxInFlight }
    return this.#world.subscribe(id, { url, ordering, types, ...limit, ...more })
  }

  #change(id: string, change: Plan['changes'][number]['change']): void {
    const world = this.#world
    const before = world.subscriptions.get(id)
    if (before === undefined) return
    switch (change.t) {
      case 'url': {
        const url = `https://${id}.test/moved-${change.kind}`
        world.receiver.serve(url, id, change.endpoint)
        void world.subscribe(id, { url })
        return
      }
      case 'ordering':
        this.#reordered.add(id)
        void world.subscribe(id, { ordering: change.ordering })
        return
      case 'pause':
        if (before.status !== 'active') return
        void world.setStatus(id, 'paused')
        world.clock.after(change.forMs, () => {
          if (world.subscriptions.get(id)?.status === 'paused') void world.setStatus(id, 'active')
        })
        return
      case 'delete':
        this.#uncertain.add(id)
        void world.unsubscribe(id)
        return
      default:
        change satisfies never
    }
  }

  /** One partition's events one after the other, each until it is acknowledged: their order is known. */
  #produce({ partition, type, key, bytes }: Plan['events'][number]): void {
    if (this.#cutOff) return
    const tail = this.#partitionTails.get(partition) ?? Promise.resolve()
    const next = tail.then(async () => {
      if (this.#cutOff) return
      const world = this.#world
      const line = key ?? ''
      const sequence = this.#sequences.get(line) ?? 0
      this.#sequences.set(line, sequence + 1)
      const name = `e-${line}-${sequence}`
      const mark = this.#mark(key)
      this.#events.set(eventOf(key, sequence), { mark, type })
      const body = bodyOf(sequence, mark, bytes)
      const headers = headerMap([
        ['event-type', type],
        ['event-id', name],
      ])
      let value = body
      if (mark.claimed) {
        const claim = { ...claimFor(body, 0), key: claimKeyOf(key, sequence) }
        headers[claimHeader] = Buffer.from(encodeClaim(claim))
        if (!mark.missing) world.objects.put(claim, body)
        value = Buffer.alloc(0)
      }
      const before = new Map([...world.writes].map(([id, { begun, done }]) => [id, { begun, done }]))
      const matching = (subscriptions: ReadonlyMap<string, Subscription>) => {
        const index = new MatchIndex()
        for (const s of subscriptions.values()) index.set(s)
        return index
          .match('default', type)
          .filter(({ id }) => this.#plan.features.wishes.get(id)?.passes(mark) !== false)
      }
      const sure = matching(world.acknowledged)
      const produced: Produced = {
        name,
        partition,
        offset: -1,
        life: this.#life,
        wanted: [],
        key,
        sequence,
        mark,
      }
      this.#produced.push(produced)
      produced.offset = await world.append({ topic: 'events', partition, key, value, headers })
      // What was acknowledged before it was produced sees it; what was written meanwhile may or may not.
      const quiet = (id: string) => {
        const then = before.get(id)
        return then !== undefined && then.begun === then.done && then.begun === world.writes.get(id)?.begun
      }
      const possible = new Map([...sure, ...matching(world.subscriptions)].map((s) => [s.id, s]))
      produced.wanted = [...possible.values()].map((s) => ({
        subscription: s,
        maybe: !quiet(s.id) || !sure.includes(s),
      }))
    })
    this.#partitionTails.set(partition, next)
  }

  /** Somebody deletes and creates the topic while nothing runs. What was not routed yet is gone, and counted. */
  #recreate(): Promise<void> {
    const world = this.#world
    this.#cutOff = true
    return Promise.all(this.#partitionTails.values()).then(async () => {
      // Without topic ids a router can't tell a new log from the old one unless it is shorter than what was committed.
      const far = () => world.broker.logs('events').every((log) => world.routed(log.partition) >= Math.min(log.end, 35))
      for (let i = 0; i < 120 && !far(); i++) await new Promise<void>((resolve) => world.clock.after(500, resolve))
      if (!far() || world.broker.logs('events').some((log) => log.end < 35)) {
        this.#cutOff = false
        return
      }
      world.holdAll()
      for (const log of world.broker.logs('events')) world.broker.truncate('events', log.partition, log.end)
      world.broker.recreateTopic('events')
      this.#lossesBefore = world.broker.losses.length
      this.#life++
      world.startAll()
      // The routers must look before the new log has grown as long as the old one was.
      for (let routed = 0; routed < this.#plan.eventPartitions; ) {
        await new Promise<void>((resolve) => world.clock.after(500, resolve))
        routed = world.workers.reduce((n, { pipeline }) => n + [...(pipeline?.router?.streams ?? [])].length, 0)
      }
      this.#cutOff = false
      for (const event of this.#plan.events.slice(0, 20)) this.#produce(event)
    })
  }

  /** The operator's part: everything that is paused or disabled goes on, with endpoints that answer. */
  async #settleSubscriptions(): Promise<void> {
    const world = this.#world
    await world.clock.drive(Promise.all(this.#partitionTails.values()))
    world.objects.away = false
    await world.clock.drive(this.#operator.idle())
    await this.#reactivate()
  }

  async #reactivate(): Promise<void> {
    const world = this.#world
    for (const { id, status, url } of [...world.subscriptions.values()]) {
      if (status === 'active') continue
      if (status === 'disabled') world.receiver.serve(url, id, delivers())
      await world.clock.drive(world.setStatus(id, 'active'))
    }
  }

  async #drain(): Promise<boolean> {
    const world = this.#world
    const untilMs = world.clock.mono() + this.#plan.boundMs
    // Nothing waits longer than a Retry-After at its cap: standing still for long is standing still for ever.
    let moved = { sum: -1, atMs: 0 }
    while (world.clock.mono() < untilMs) {
      const sum = world.receiver.posts.length + world.broker.group(layout.group).commits.length
      if (sum !== moved.sum) moved = { sum, atMs: world.clock.mono() }
      else if (world.clock.mono() - moved.atMs > 90_000) return false
      await world.clock.advance(200)
      // A 410 may come late, and a head may die late.
      await this.#reactivate()
      this.#operator.tend()
      if (this.#operator.busy || !world.drained()) continue
      // The last transaction's markers may still be on their way to the other topics.
      await world.clock.advance(1_000)
      return true
    }
    return false
  }

  #evidence(): Evidence {
    const world = this.#world
    const expected: Expected[] = []
    const ranks = this.#lineRanks()
    for (const event of this.#produced) {
      const lost = world.broker.losses
        .slice(event.life === this.#life ? this.#lossesBefore : 0)
        .some(
          (l) =>
            l.topic === 'events' && l.partition === event.partition && event.offset >= l.from && event.offset < l.to,
        )
      const old = this.#life > event.life
      for (const { subscription, maybe } of event.wanted) {
        const { id, ordering } = subscription
        const optional = maybe || this.#uncertain.has(id) || lost || old
        expected.push({
          subscription: id,
          key: event.key,
          sequence: event.sequence,
          ordered: ordering !== 'none' && !this.#reordered.has(id) && ranks.get(`${id}/${event.name}`) !== null,
          ...(optional ? { optional } : {}),
          ...(ordering === 'subscription'
            ? { line: `${id} as a whole`, rank: ranks.get(`${id}/${event.name}`) ?? -1 }
            : {}),
        })
      }
    }
    for (const { record } of world.broker.committed('dead')) {
      const decoded = record === null ? null : decodeDelivery(record)
      if (decoded?.ok !== true || !this.#operator.redriven.has(decoded.value.id)) continue
      const { subscriptionId: subscription, orderingKey: key, eventId } = decoded.value
      const sequence = Number(/\d+$/.exec(eventId)?.[0])
      if (
        expected.some(
          (e) => e.again === 1 && e.subscription === subscription && e.key === key && e.sequence === sequence,
        )
      )
        continue
      expected.push({ subscription, key, sequence, ordered: false, again: 1 })
    }
    const { given, applied, redriven, released } = this.#operator
    return collectEvidence(world.broker, layout, {
      operated: {
        given,
        applied,
        redriven,
        released,
        reordered: this.#reordered,
        ...this.#traits(),
        shapeOf: (s, key, n) => this.#shapeOf(s, key, n),
      },
      posts: world.receiver.posts,
      expected,
      maxAttempts: this.#plan.maxAttempts,
      gauges: world.gauges(),
    })
  }

  #traits(): Pick<Operated, 'blocking' | 'cancelling'> {
    const { features, changes } = this.#plan
    const deleted = changes.filter(({ change }) => change.t === 'delete').map(({ subscription }) => subscription)
    const having = (able: (more: Partial<Subscription>) => boolean) =>
      [...features.wishes].filter(([, { more }]) => able(more)).map(([id]) => id)
    const dropping = having(({ whileDisabled }) => whileDisabled === 'drop')
    return {
      blocking: new Set(having(({ onDead }) => onDead === 'block')),
      cancelling: new Set([...deleted, ...dropping.filter((id) => this.#world.disabled.has(id))]),
    }
  }

  #shapeOf(subscription: string, key: string | null, sequence: number): Shape | null {
    const event = this.#events.get(eventOf(key, sequence))
    const { subscriptions, features } = this.#plan
    const planned = subscriptions.find(({ id }) => id === subscription)
    const wish = features.wishes.get(subscription)
    if (event === undefined || planned === undefined || wish === undefined) return null
    const { mark, type } = event
    if (!planned.types.some((pattern) => patternMatches(pattern, type)) || !wish.passes(mark)) return null
    return mark.missing ? 'none' : wish.shape(mark)
  }

  /**
   * The order of a whole subscription is that of its first appearance in `deliveries`. Where retention took one appearance and
   * another is left, either may count: that of what a lane had in memory, or of what its next owner read. Null: unknown.
   */
  #lineRanks(): Map<string, number | null> {
    const { broker } = this.#world
    const ranks = new Map<string, number | null>()
    const lost = new Set<string>()
    for (const { record, offset, partition } of broker.committed('deliveries')) {
      const name = `${record?.headers['ht-sub']}/${record?.headers['ht-event']}`
      const gone = broker.losses.some((l) => l.topic === 'deliveries' && l.partition === partition && offset < l.to)
      if (!ranks.has(name)) ranks.set(name, ranks.size)
      else if (lost.has(name)) ranks.set(name, null)
      if (gone) lost.add(name)
    }
    return ranks
  }
}

function eventOf(key: string | null, sequence: number): string {
  return `${key ?? ''}#${sequence}`
}

/** A head that retention takes from its tier is a scenario of its own. */
const spared = { processes: ['operator'], topics: Object.keys(tierDelays) }

const breaker = { failures: 4, failureRate: 0.8, minSamples: 10, windowMs: 5_000, openMs: 500, maxOpenMs: 4_000 }

/** Bounds so small that parking, relief and pausing are the rule. */
const small = {
  flow: { maxRecords: 20, maxBytes: 60_000, tierMaxRecords: 8, tierMaxBytes: 60_000 },
  lines: { maxHeld: 3, maxBuffer: 3, maxBuffered: 8, maxOpenUnordered: 2 },
  crowd: { minShare: 3, keep: 2, behind: 4 },
  span: spanOf(64),
  maxBytes: 160_000,
  claims: { maxOpenBytes: 3_000, fetchMs: 3_000 },
  executor: {
    maxInFlight: 4,
    maxInFlightBytes: 40_000,
    retryShare: 0.3,
    maxPerSubscription: 2,
    maxPerOrigin: 3,
    maxPerOriginPerSecond: null,
  },
  commit: { records: 10, everyMs: 300, movesEveryMs: 100 },
}
