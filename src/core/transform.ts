import { type EventPath, parsePath } from './event-path.ts'
import type { Compiled } from './filter.ts'
import { isScalar } from './filter-operators.ts'
import type { Problem } from './result.ts'
import { suggest } from './suggest.ts'

/** What stands in a subscription: the body of its POSTs as a template over the event (docs/transformations.md). */
export interface Transformation {
  readonly template: unknown
  /** When the template can't be filled: the delivery is dead (default), or the event's own body is sent. */
  readonly onError?: 'dead' | 'original'
}

/** A compiled template. Nothing in it computes without bound: `fillTemplate` counts its work and its output. */
export type Template =
  | { readonly t: 'const'; readonly value: unknown }
  | { readonly t: 'list'; readonly of: readonly Template[] }
  | { readonly t: 'object'; readonly of: readonly (readonly [string, Template])[] }
  | { readonly t: 'path'; readonly path: EventPath; readonly fallback: unknown; readonly required: boolean }
  | { readonly t: 'concat'; readonly of: readonly Template[] }
  | { readonly t: 'map'; readonly path: EventPath; readonly to: Template }
  | {
      readonly t: 'members'
      readonly path: EventPath
      readonly pick: ReadonlySet<string> | null
      readonly omit: ReadonlySet<string>
      readonly rename: ReadonlyMap<string, string>
    }

export interface CompiledTransformation {
  readonly template: Template
  readonly needsBody: boolean
  readonly onError: 'dead' | 'original'
}

/** Every problem at once, each naming place and remedy. */
export function compileTransformation(asked: Transformation): Compiled<CompiledTransformation> {
  const compiler = new Compiler()
  if (Buffer.byteLength(JSON.stringify(asked.template) ?? '') > maxBytes)
    compiler.refuse('transform.template', `is larger than ${maxBytes} bytes`, 'shorten it')
  const template = compiler.template(asked.template, { field: 'transform.template', depth: 1, maps: 0 })
  if (compiler.problems.length > 0) return { ok: false, problems: compiler.problems.slice(0, 20) }
  return { ok: true, value: { template, needsBody: compiler.needsBody, onError: asked.onError ?? 'dead' } }
}

interface Place {
  readonly field: string
  readonly depth: number
  /** `$map`s around it. */
  readonly maps: number
}

class Compiler {
  readonly problems: Problem[] = []
  needsBody = false
  #nodes = 0

  template(value: unknown, place: Place): Template {
    if (++this.#nodes > maxNodes) {
      if (this.#nodes === maxNodes + 1) this.refuse(place.field, `is part ${this.#nodes}`, `keep ${maxNodes} parts`)
      return nothing
    }
    if (isScalar(value)) return { t: 'const', value }
    if (place.depth > maxDepth)
      return this.refuse(place.field, `is nested deeper than ${maxDepth} levels`, 'flatten the template')
    if (Array.isArray(value))
      return { t: 'list', of: value.map((part, i) => this.template(part, into(place, `[${i}]`))) }
    if (typeof value !== 'object' || value === null)
      return this.refuse(place.field, 'is missing', 'give a template, e.g. {"id": {"$path": "body.id"}}')
    const members = Object.entries(value)
    const kind = members.find(([name]) => kinds.includes(name))?.[0]
    const dollar = members.find(([name]) => name.startsWith('$'))?.[0]
    if (kind !== undefined) return this.#expression(kind, value as Record<string, unknown>, place)
    if (dollar !== undefined) {
      const meant = suggest(dollar, kinds)
      const remedy =
        meant === null ? `use ${kinds.join(', ')}; a name with $ goes into {"$const": …}` : `did you mean ${meant}?`
      return this.refuse(`${place.field}.${dollar}`, `${dollar} is not known`, remedy)
    }
    return {
      t: 'object',
      of: members.map(([name, part]) => [name, this.template(part, into(place, `.${name}`))] as const),
    }
  }

  #expression(kind: string, value: Record<string, unknown>, place: Place): Template {
    const partners = partnersOf[kind] as readonly string[]
    for (const name of Object.keys(value)) {
      if (name === kind || partners.includes(name)) continue
      const remedy = partners.length === 0 ? 'remove it' : `beside ${kind} stand ${partners.join(', ')}`
      return this.refuse(`${place.field}.${name}`, `does not go with ${kind}`, remedy)
    }
    switch (kind) {
      case '$const':
        return { t: 'const', value: value.$const }
      case '$path':
        return this.#path(value, place)
      case '$concat':
        if (!Array.isArray(value.$concat))
          return this.refuse(`${place.field}.$concat`, 'is no list', 'write ["order ", {"$path": "body.id"}]')
        return {
          t: 'concat',
          of: value.$concat.map((part: unknown, i) => this.template(part, into(place, `.$concat[${i}]`))),
        }
      case '$map':
        return this.#map(value, place)
      default:
        return this.#members(value, place)
    }
  }

  #path({ $path, $default, $required }: Record<string, unknown>, place: Place): Template {
    if ($required !== undefined && typeof $required !== 'boolean')
      return this.refuse(`${place.field}.$required`, 'must be true or false', 'correct it')
    if ($required === true && $default !== undefined)
      return this.refuse(`${place.field}.$default`, 'stands beside $required', 'keep one of them')
    const path = this.#parsed($path, `${place.field}.$path`, place)
    return path === null ? nothing : { t: 'path', path, fallback: $default, required: $required === true }
  }

  #map({ $map, $to }: Record<string, unknown>, place: Place): Template {
    if (place.maps >= maxMaps) return this.refuse(place.field, `is inside of ${maxMaps} $map`, 'flatten it')
    if ($to === undefined) return this.refuse(`${place.field}.$to`, 'is missing', 'say what each item becomes')
    const path = this.#parsed($map, `${place.field}.$map`, place)
    const to = this.template($to, { ...into(place, '.$to'), maps: place.maps + 1 })
    return path === null ? nothing : { t: 'map', path, to }
  }

  #members({ $from, $pick, $omit, $rename }: Record<string, unknown>, place: Place): Template {
    const path = this.#parsed($from ?? 'body', `${place.field}.$from`, place)
    const pick = $pick === undefined ? null : this.#names($pick, `${place.field}.$pick`)
    const omit = $omit === undefined ? new Set<string>() : this.#names($omit, `${place.field}.$omit`)
    const renames = typeof $rename === 'object' && $rename !== null ? Object.entries($rename) : []
    if ($rename !== undefined && (renames.length === 0 || renames.some(([, name]) => typeof name !== 'string')))
      return this.refuse(`${place.field}.$rename`, 'is no object of names', 'write {"old": "new"}')
    if (path === null || (pick !== null && pick.size === 0)) return nothing
    return { t: 'members', path, pick, omit, rename: new Map(renames as [string, string][]) }
  }

  #names(value: unknown, field: string): ReadonlySet<string> {
    if (Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === 'string'))
      return new Set(value)
    this.refuse(field, 'is no list of names', 'write ["id", "total"]')
    return new Set()
  }

  #parsed(text: unknown, field: string, place: Place): EventPath | null {
    const path =
      typeof text === 'string'
        ? parsePath(text, { wild: false, item: place.maps > 0 })
        : { ok: false as const, reason: 'is no text; write a path such as body.id' }
    if (path.ok) {
      if (path.value.root !== 'event') this.needsBody = true
      return path.value
    }
    const [message, remedy] = path.reason.split('; ')
    this.refuse(field, `the path ${message}`, remedy)
    return null
  }

  refuse(field: string, message: string, remedy = 'correct it'): Template {
    this.problems.push({ field: field.length > 200 ? `${field.slice(0, 197)}…` : field, value: '', message, remedy })
    return nothing
  }
}

function into(place: Place, step: string): Place {
  return { ...place, field: `${place.field}${step}`, depth: place.depth + 1 }
}

/** Expression → what may stand beside it. In the order in which they are looked for. */
const partnersOf: Readonly<Record<string, readonly string[]>> = {
  $const: [],
  $path: ['$default', '$required'],
  $concat: [],
  $map: ['$to'],
  $pick: ['$from', '$omit', '$rename'],
  $omit: ['$from', '$rename'],
  $rename: ['$from'],
}
const kinds = Object.keys(partnersOf)
const nothing: Template = { t: 'const', value: null }
const maxBytes = 16_384
const maxNodes = 500
const maxDepth = 16
const maxMaps = 3
