import type { Subscription } from './subscription.ts'

/**
 * Which subscriptions want an event. Indexed by tenant and pattern, so an event costs one look-up per segment of its type
 * and what it matches, however many subscriptions do not match.
 *
 * Whatever their status: deliveries of a paused subscription wait, those of a disabled one wait or are cancelled. Filters
 * come later, they need the event.
 */
export class MatchIndex {
  readonly #byId = new Map<string, Subscription>()
  /** tenant → pattern key → id → subscription. Keys: `=type`, `.prefix` (for `prefix.*`), `*`. */
  readonly #tenants = new Map<string, Map<string, Map<string, Subscription>>>()

  readonly #reserved: string | null

  /** `reserved`: types that begin so are Hooktide's own, which `*` does not mean: they have to be named. */
  constructor(reserved: string | null = null) {
    this.#reserved = reserved
  }

  get size(): number {
    return this.#byId.size
  }

  /** Adds the subscription, or replaces the one with its id. */
  set(subscription: Subscription): void {
    this.remove(subscription.id)
    this.#byId.set(subscription.id, subscription)
    let patterns = this.#tenants.get(subscription.tenant)
    if (patterns === undefined) {
      patterns = new Map()
      this.#tenants.set(subscription.tenant, patterns)
    }
    for (const type of subscription.types) {
      const key = patternKey(type)
      const members = patterns.get(key)
      if (members === undefined) patterns.set(key, new Map([[subscription.id, subscription]]))
      else members.set(subscription.id, subscription)
    }
  }

  remove(id: string): boolean {
    const old = this.#byId.get(id)
    if (old === undefined) return false
    this.#byId.delete(id)
    const patterns = this.#tenants.get(old.tenant)
    for (const type of old.types) {
      const key = patternKey(type)
      const members = patterns?.get(key)
      members?.delete(id)
      if (members?.size === 0) patterns?.delete(key)
    }
    if (patterns?.size === 0) this.#tenants.delete(old.tenant)
    return true
  }

  get(id: string): Subscription | undefined {
    return this.#byId.get(id)
  }

  all(): IterableIterator<Subscription> {
    return this.#byId.values()
  }

  /** Sorted by id in code unit order, each once: lanes recognise repeats by that order (design, "Fan-out exactly once"). */
  match(tenant: string, type: string): Subscription[] {
    const patterns = this.#tenants.get(tenant)
    if (patterns === undefined) return []
    const groups = [patterns.get(`=${type}`)]
    if (this.#reserved === null || !type.startsWith(this.#reserved)) groups.push(patterns.get('*'))
    for (let dot = type.indexOf('.'); dot !== -1; dot = type.indexOf('.', dot + 1))
      groups.push(patterns.get(`.${type.slice(0, dot)}`))
    const hit = groups.filter((group) => group !== undefined)
    const found = hit.length === 1 ? [...(hit[0] as Map<string, Subscription>).values()] : union(hit)
    return found.sort(bySubscriptionId)
  }
}

export function bySubscriptionId(a: Pick<Subscription, 'id'>, b: Pick<Subscription, 'id'>): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0
}

/** Does this pattern want this type? The rule the index is held to. */
export function patternMatches(pattern: string, type: string): boolean {
  if (pattern === '*') return true
  return pattern.endsWith('.*') ? type.startsWith(pattern.slice(0, -1)) : pattern === type
}

function patternKey(pattern: string): string {
  if (pattern === '*') return '*'
  return pattern.endsWith('.*') ? `.${pattern.slice(0, -2)}` : `=${pattern}`
}

function union(groups: readonly ReadonlyMap<string, Subscription>[]): Subscription[] {
  const found = new Map<string, Subscription>()
  for (const group of groups) for (const [id, subscription] of group) found.set(id, subscription)
  return [...found.values()]
}
