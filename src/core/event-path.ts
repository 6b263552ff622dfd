import { type AttributeName, attributeNames, type EventFacts } from './event-facts.ts'
import { fail, ok, type Result } from './result.ts'
import { suggest } from './suggest.ts'

/**
 * Where a filter or a transformation looks: `body.order.total`, `body.items.0.sku`, `body.items.*.sku` (filters: any item),
 * a JSON Pointer into the body for names with dots (`/a.b/c`, RFC 6901), `event.type`; in `$map` also `item.sku`.
 */
export type EventPath =
  | { readonly root: 'event'; readonly attribute: AttributeName; readonly text: string }
  | { readonly root: 'body' | 'item'; readonly keys: readonly PathKey[]; readonly text: string }

/** `null`: any item of an array. */
export type PathKey = string | null

export interface PathRules {
  /** May a segment be `*`? */
  readonly wild: boolean
  /** Is there an `item`? */
  readonly item: boolean
}

export function parsePath(text: string, rules: PathRules): Result<EventPath> {
  if (text.length > maxPathChars) return fail(`is longer than ${maxPathChars} characters`)
  if (text.startsWith('/')) {
    const keys = text
      .slice(1)
      .split('/')
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
    return bounded({ root: 'body', keys, text })
  }
  const [root, ...names] = text.split('.') as [string, ...string[]]
  if (names.includes('')) return fail('has an empty segment; write body.a.b, or /a/b for names with dots')
  if (root === 'event') {
    const name = names.join('.')
    const attribute = attributeNames.find((known) => known === name)
    if (attribute !== undefined) return ok({ root, attribute, text })
    const meant = suggest(name, attributeNames)
    return fail(`names no attribute of an event; ${meant === null ? `use ${list}` : `did you mean event.${meant}?`}`)
  }
  if (root === 'body' || (root === 'item' && rules.item)) {
    const keys = names.map((name) => (rules.wild && name === '*' ? null : name))
    if (keys.filter((key) => key === null).length > 1) return fail('holds more than one *; keep one')
    return bounded({ root, keys, text })
  }
  if (root === 'item') return fail('stands outside of $map, where there is no item')
  return fail(`does not begin with body, event or /; did you mean body.${text.slice(0, 60)}?`)
}

function bounded(path: EventPath): Result<EventPath> {
  if (path.root !== 'event' && path.keys.length > maxSegments) return fail(`has more than ${maxSegments} segments`)
  return ok(path)
}

/** The value at a path without `*`; undefined: there is none. Own members only: a name like `constructor` is just a name. */
export function lookUp(path: EventPath, facts: EventFacts, item?: unknown): unknown {
  if (path.root === 'event') return facts.attribute(path.attribute)
  return stepsFrom(path.root === 'item' ? item : facts.body, path.keys, 0, path.keys.length)
}

export function stepsFrom(start: unknown, keys: readonly PathKey[], from: number, to: number): unknown {
  let at = start
  for (let i = from; i < to; i++) {
    const key = keys[i] as string
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    // An array has `length` as its own, which no JSON does.
    if (Array.isArray(at) && key === 'length') return undefined
    at = (at as Record<string, unknown>)[key]
  }
  return at
}

const maxPathChars = 512
const maxSegments = 32
const list = attributeNames.map((name) => `event.${name}`).join(', ')
