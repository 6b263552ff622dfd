import { expect } from 'vitest'
import type { Attempt } from '../../src/core/attempt.ts'
import { claimFor, claimHeader, encodeClaim } from '../../src/core/claim.ts'
import { type Control, controlKey } from '../../src/core/control.ts'
import { decodeDelivery, deliveryHeader } from '../../src/core/delivery.ts'
import type { LaneState, LineState } from '../../src/core/lane-state.ts'
import { laneOf } from '../../src/core/partition.ts'
import { headerMap } from '../../src/core/record.ts'
import type { Subscription } from '../../src/core/subscription.ts'
import type { PipelineSettings } from '../../src/pipeline/pipeline-settings.ts'
import type { Endpoint } from './endpoints.ts'
import { claimKeyOf } from './names.ts'
import type { PostEntry } from './receiver.ts'
import { World, type WorldOptions } from './world.ts'

/** A world played by hand: subscriptions, events, operators' orders, and what can be seen of what comes of them. */
export class Stage {
  readonly world: World
  readonly applied: { readonly atMs: number; readonly worker: string; readonly target: string }[] = []
  readonly log: { atMs: number; worker: string; level: string; name: string; fields: object }[] = []
  readonly #sequences = new Map<string, number>()

  constructor(settings: Partial<PipelineSettings> = {}, lanes = 4, workers = 2, more: Partial<WorldOptions> = {}) {
    this.world = new World({
      seed: 11,
      lanes,
      eventPartitions: 2,
      workers,
      settings,
      ...more,
      onLog: (atMs, worker, level, name, fields) => {
        this.log.push({ atMs, worker, level, name, fields })
        if (name === 'control.applied')
          this.applied.push({ atMs, worker, target: (fields as { target: string }).target })
      },
    })
  }

  async start(subscriptions: Readonly<Record<string, Partial<Subscription> & { endpoint: Endpoint }>>): Promise<this> {
    const { world } = this
    for (const [id, { endpoint, ...change }] of Object.entries(subscriptions)) {
      const url = change.url ?? `https://${id}.test/`
      world.receiver.serve(url, id, endpoint)
      await world.clock.drive(world.subscribe(id, { types: [id], url, ...change }))
    }
    world.startAll()
    await this.running()
    return this
  }

  /** Both workers own lanes. */
  async running(): Promise<void> {
    const { world } = this
    const up = () => {
      const lanes = world.workers.flatMap(({ pipeline }) => [...(pipeline?.deliverer?.lanes ?? [])])
      return (
        lanes.length === world.settings.lanes &&
        lanes.every(({ status }) => status === 'running') &&
        world.workers.every(({ pipeline }) => [...(pipeline?.deliverer?.lanes ?? [])].length > 0)
      )
    }
    expect(await world.clock.runUntil(up, 60_000)).toBe(true)
  }

  /** Dead by kill −9, all of them, and started again. */
  async restartAll(): Promise<void> {
    const { world } = this
    world.holdAll()
    await world.clock.advance(500)
    world.startAll()
    await this.running()
  }

  /** Events for one subscription, acknowledged in order. */
  async produce(subscription: string, key: string | null, n = 1, more: { claimed?: boolean } = {}): Promise<void> {
    const { world } = this
    const line = `${subscription}/${key}`
    for (let i = 0; i < n; i++) {
      const sequence = this.#sequences.get(line) ?? 0
      this.#sequences.set(line, sequence + 1)
      const headers = headerMap([
        ['event-type', subscription],
        ['event-id', `${line}/${sequence}`],
      ])
      let value = Buffer.from(JSON.stringify({ key, sequence }))
      if (more.claimed === true) {
        const claim = { ...claimFor(value, 0), key: claimKeyOf(key, sequence) }
        headers[claimHeader] = Buffer.from(encodeClaim(claim))
        world.objects.put(claim, value)
        value = Buffer.alloc(0)
      }
      await world.clock.drive(world.append({ topic: 'events', partition: 0, key, value, headers }))
    }
  }

  async order(order: Pick<Control, 'kind' | 'target' | 'order'> & Partial<Control>): Promise<void> {
    const { clock } = this.world
    const full: Control = { v: 1, by: 'test', atMs: clock.now(), ...order }
    await this.write(controlKey(full), Buffer.from(JSON.stringify(full)))
  }

  async write(key: string, value: Buffer | null): Promise<void> {
    const { world } = this
    const record = { topic: 'control', partition: 0, key, value, headers: headerMap() }
    await world.clock.drive(world.append(record))
  }

  until(predicate: () => boolean, maxMs = 60_000): Promise<boolean> {
    return this.world.clock.runUntil(predicate, maxMs)
  }

  advance(ms: number): Promise<void> {
    return this.world.clock.advance(ms)
  }

  get nowMs(): number {
    return this.world.clock.mono()
  }

  posts(subscription: string, since = 0): PostEntry[] {
    return this.world.receiver.posts.filter((post) => post.subscription === subscription && post.startMs >= since)
  }

  /** What the endpoint took, in its order. */
  accepted(subscription: string): PostEntry[] {
    return this.posts(subscription)
      .filter(({ acceptedMs }) => acceptedMs !== null)
      .sort((a, b) => (a.acceptedMs as number) - (b.acceptedMs as number))
  }

  sequences(subscription: string, key: string | null): number[] {
    return this.accepted(subscription)
      .filter((post) => post.key === key)
      .map(({ sequence }) => sequence)
  }

  attempts(subscription: string): Attempt[] {
    return this.world.broker
      .committed('attempts')
      .map(({ record }) => JSON.parse(record?.value?.toString() ?? 'null') as Attempt)
      .filter((attempt) => attempt?.subscriptionId === subscription)
  }

  line(key: string): LineState | null {
    let last: LaneState | null = null
    for (const { record } of this.world.broker.committed('lane-state')) {
      if (record?.key?.toString() !== `line:${key}`) continue
      last = record.value === null ? null : (JSON.parse(record.value.toString()) as LaneState)
    }
    return last as LineState | null
  }

  ids(topic: string, subscription: string): string[] {
    return this.world.broker
      .committed(topic)
      .filter(({ record }) => record?.headers[deliveryHeader.subscription]?.toString() === subscription)
      .map(({ record }) => record?.headers[deliveryHeader.id]?.toString() ?? '')
  }

  /** The dead letter goes to `deliveries` again, as `hooktide dead redrive` does it. */
  async redrive(id: string): Promise<void> {
    const { world } = this
    const dead = world.broker
      .committed('dead')
      .find(({ record }) => record?.headers[deliveryHeader.id]?.toString() === id)?.record
    const decoded = decodeDelivery(dead as NonNullable<typeof dead>)
    if (!decoded.ok) throw new Error(decoded.reason)
    const headers = Object.assign(headerMap(), dead?.headers, {
      [deliveryHeader.origin]: Buffer.from(`redrive:${id}:1:0`),
      [deliveryHeader.attempts]: Buffer.from('0'),
    })
    const { subscriptionId, body: value } = decoded.value
    const partition = laneOf({ id: subscriptionId, ordering: 'key' }, id, world.settings.lanes)
    await world.clock.drive(world.append({ topic: 'deliveries', partition, key: subscriptionId, value, headers }))
  }

  async drained(): Promise<void> {
    expect(await this.until(() => this.world.drained(), 300_000)).toBe(true)
    // Markers may come later than what they make visible.
    await this.advance(500)
    expect(this.world.fatal).toEqual([])
  }
}
