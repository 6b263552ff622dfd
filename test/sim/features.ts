import type { Ordering, Subscription } from '../../src/core/subscription.ts'
import { between, pick, type Random, randomStream } from './random.ts'

/** What a POST of an event must carry: the event's own body, what the transformation makes of it, or there must be none. */
export type Shape = 'plain' | 'shaped' | 'none'

/** What a subscription asks for besides types and order, and what must come of it, said without the product's code. */
export interface Wish {
  readonly more: Partial<Subscription>
  passes(event: Marked): boolean
  shape(event: Marked): Shape
}

/** What filters and transformations can see of an event. */
export interface Marked {
  readonly tag: number
  readonly key: string | null
  /** Its body is in the object store, where a filter does not look. */
  readonly claimed: boolean
  /** Claimed, and not in the store. */
  readonly missing: boolean
}

/** What operators do while the world runs; whom it concerns is decided when the time has come. */
export type PlannedOrder = { readonly atMs: number } & (
  | { readonly t: 'tier'; readonly tier: string; readonly perSecond: number | null; readonly forMs: number }
  | { readonly t: 'subscription'; readonly id: string; readonly forMs: number }
  | { readonly t: 'disable'; readonly id: string; readonly forMs: number }
  | { readonly t: 'cancel'; readonly dead: boolean }
  | { readonly t: 'cancelLine'; readonly dead: boolean }
  | { readonly t: 'release' }
  | { readonly t: 'redrive'; readonly most: number }
)

export interface Features {
  readonly wishes: ReadonlyMap<string, Wish>
  readonly orders: readonly PlannedOrder[]
  /** A body in the object store, per event: this often. */
  readonly claims: number
  /** When the object store can't be asked, ms of the run. */
  readonly storeAway: { readonly fromMs: number; readonly toMs: number } | null
}

/** Tags of events, drawn for each; `extra` is in the body of all but those with the last one. */
export const tags = 4

/** Which of the product's features a seed uses: each in about a third of them, so that they meet in all ways. */
export function featuresOf(
  seed: number,
  mode: string,
  /** `reordered`: its ordering is changed some time. */
  subscriptions: readonly { readonly id: string; readonly ordering: Ordering; readonly reordered: boolean }[],
  plan: { readonly flowMs: number; readonly tiers: readonly string[]; readonly retention: boolean },
): Features {
  const random = randomStream(seed, `features ${mode}`)
  const chance = (p: number) => random() < p
  const on = {
    filters: chance(0.35),
    transforms: chance(0.35),
    claims: chance(0.3),
    disabled: chance(0.3),
    block: chance(0.35),
    redrive: chance(0.35),
    tiers: chance(0.3),
    pauses: chance(0.3),
    cancels: chance(0.35),
    lines: chance(0.3),
    spread: chance(0.2),
  }
  const wishes = new Map<string, Wish>()
  for (const { id, ordering, reordered } of subscriptions) {
    const filter = on.filters && chance(0.6) ? pick(random, filters) : everything
    const transform = on.transforms && chance(0.6) ? pick(random, transforms) : asItIs
    const whileDisabled = on.disabled && chance(0.7) ? { whileDisabled: pick(random, ['drop', 'hold'] as const) } : {}
    const onDead = on.block && chance(0.6) ? { onDead: 'block' as const } : {}
    // Spread otherwise, what a router writes again comes to another lane, which can't know it.
    const spread = on.spread && ordering === 'none' && !reordered ? { spread: between(random, 2, 3) } : {}
    wishes.set(id, {
      more: { ...filter.more, ...transform.more, ...whileDisabled, ...onDead, ...spread },
      passes: filter.passes,
      shape: transform.shape,
    })
  }
  const orders: PlannedOrder[] = []
  const add = (most: number, make: () => DistributiveOmit<PlannedOrder, 'atMs'>) => {
    for (let i = between(random, 1, most); i > 0; i--)
      orders.push({ atMs: between(random, 500, plan.flowMs + 4_000), ...make() })
  }
  const anyId = () => pick(random, subscriptions).id
  const dead = () => chance(0.4)
  if (on.tiers) {
    add(2, () => {
      const perSecond = chance(0.6) ? null : between(random, 1, 20)
      return { t: 'tier', tier: pick(random, plan.tiers), perSecond, forMs: between(random, 500, 8_000) }
    })
  }
  if (on.pauses) add(2, () => ({ t: 'subscription', id: anyId(), forMs: between(random, 500, 8_000) }))
  if (on.disabled) add(2, () => ({ t: 'disable', id: anyId(), forMs: between(random, 500, 6_000) }))
  if (on.cancels) add(4, () => ({ t: 'cancel', dead: dead() }))
  if (on.lines) add(2, () => ({ t: 'cancelLine', dead: dead() }))
  if (on.block || on.lines) add(3, () => ({ t: 'release' }))
  // What retention takes from `deliveries` can make a delivery come twice, and then two rounds can't be told apart.
  if (on.redrive && !plan.retention) add(3, () => ({ t: 'redrive', most: between(random, 1, 6) }))
  const awayMs = between(random, 500, plan.flowMs)
  return {
    wishes,
    orders: orders.sort((a, b) => a.atMs - b.atMs),
    claims: on.claims ? 0.15 : 0,
    storeAway: on.claims && chance(0.5) ? { fromMs: awayMs, toMs: awayMs + between(random, 500, 8_000) } : null,
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

const everything = { more: {}, passes: () => true } as const

const filters: readonly Pick<Wish, 'more' | 'passes'>[] = [
  { more: { filter: { 'body.tag': { $gte: 1 } } }, passes: ({ tag, claimed }) => claimed || tag >= 1 },
  {
    more: { filter: { 'body.tag': { $in: [0, 3] } } },
    passes: ({ tag, claimed }) => claimed || tag === 0 || tag === 3,
  },
  { more: { filter: { 'event.key': { $ne: 'a' } } }, passes: ({ key }) => key !== 'a' },
  {
    more: { filter: { $or: [{ 'body.extra': { $exists: false } }, { $not: { 'body.tag': 1 } }] } },
    passes: ({ tag, claimed }) => claimed || tag !== 1,
  },
]

const asItIs = { more: {}, shape: (): Shape => 'plain' } as const

const template = {
  key: { $path: 'body.key', $default: null },
  sequence: { $path: 'body.sequence' },
  shape: { $concat: ['made of ', { $path: 'event.type' }] },
}
const demanding = { ...template, extra: { $path: 'body.extra', $required: true } }
const hasExtra = ({ tag }: Marked) => tag !== tags - 1

const transforms: readonly Pick<Wish, 'more' | 'shape'>[] = [
  { more: { transform: { template } }, shape: () => 'shaped' },
  { more: { transform: { template: demanding } }, shape: (event) => (hasExtra(event) ? 'shaped' : 'none') },
  {
    more: { transform: { template: demanding, onError: 'original' } },
    shape: (event) => (hasExtra(event) ? 'shaped' : 'plain'),
  },
]

/** Each event's mark, on dice of its own: what a seed did before there were marks it does still. */
export function marksOf(seed: number, mode: string, claims: number): (key: string | null) => Marked {
  const random: Random = randomStream(seed, `marks ${mode}`)
  return (key) => {
    const tag = between(random, 0, tags - 1)
    const claimed = random() < claims
    return { tag, key, claimed, missing: claimed && random() < 0.1 }
  }
}

/** The body of an event; `describeBody` reads it back. */
export function bodyOf(sequence: number, { tag, key }: Marked, padding: number): Buffer {
  const extra = tag === tags - 1 ? {} : { extra: 'x' }
  return Buffer.from(JSON.stringify({ key, sequence, tag, ...extra, pad: 'x'.repeat(padding) }))
}
