import type { EventFacts } from './event-facts.ts'
import { lookUp } from './event-path.ts'
import { isScalar } from './filter-operators.ts'
import { fail, ok, type Result } from './result.ts'
import type { CompiledTransformation, Template } from './transform.ts'

/** The body that a template makes of an event, as JSON; or why there is none, in one line. Never throws. */
export function fillTemplate(
  transformation: CompiledTransformation,
  facts: EventFacts,
  limits = defaults,
): Result<Buffer> {
  if (transformation.needsBody && facts.body === undefined) return fail('the body of the event is not JSON')
  try {
    const value = new Filling(facts, limits).fill(transformation.template, undefined)
    if (value === undefined) return fail('the template yields nothing for this event')
    const body = Buffer.from(JSON.stringify(value))
    return body.length > limits.maxBytes ? fail(tooLarge(limits)) : ok(body)
  } catch (error) {
    if (error instanceof Unfilled) return fail(error.message)
    throw error
  }
}

export interface FillLimits {
  /** Of the body that comes out. */
  readonly maxBytes: number
  /** Values made or copied. */
  readonly maxValues: number
}

/** Ends a filling; a value everywhere else. */
class Unfilled extends Error {}

class Filling {
  readonly #facts: EventFacts
  readonly #limits: FillLimits
  #values = 0
  #characters = 0

  constructor(facts: EventFacts, limits: FillLimits) {
    this.#facts = facts
    this.#limits = limits
  }

  /** Undefined: nothing stands there, and the member is left out. */
  fill(template: Template, item: unknown): unknown {
    this.#spend(1, 2)
    switch (template.t) {
      case 'const':
        return this.#copied(template.value)
      case 'list':
        return template.of.map((part) => this.fill(part, item) ?? null)
      case 'object': {
        const object = empty()
        for (const [name, part] of template.of) this.#put(object, name, this.fill(part, item))
        return object
      }
      case 'path': {
        const value = lookUp(template.path, this.#facts, item)
        if (value === undefined && template.required)
          throw new Unfilled(`${template.path.text} is required and missing`)
        return this.#copied(value === undefined ? template.fallback : value)
      }
      case 'concat': {
        const text = template.of.map((part) => this.#text(this.fill(part, item))).join('')
        this.#spend(0, text.length)
        return text
      }
      case 'map': {
        const list = lookUp(template.path, this.#facts, item)
        return Array.isArray(list) ? list.map((each) => this.fill(template.to, each) ?? null) : undefined
      }
      case 'members':
        return this.#members(template, item)
      default:
        return template satisfies never
    }
  }

  #members({ path, pick, omit, rename }: Extract<Template, { t: 'members' }>, item: unknown): unknown {
    const from = lookUp(path, this.#facts, item)
    if (typeof from !== 'object' || from === null || Array.isArray(from)) return undefined
    const object = empty()
    for (const name of pick ?? Object.keys(from)) {
      this.#spend(1, 0)
      if (omit.has(name) || !Object.hasOwn(from, name)) continue
      this.#put(object, rename.get(name) ?? name, this.#copied((from as Record<string, unknown>)[name]))
    }
    return object
  }

  #put(object: Record<string, unknown>, name: string, value: unknown): void {
    if (value === undefined) return
    this.#spend(0, name.length + 4)
    object[name] = value
  }

  #text(value: unknown): string {
    if (value === undefined || value === null) return ''
    if (isScalar(value)) return String(value)
    throw new Unfilled('$concat joins texts, numbers, true and false, not objects or lists')
  }

  /** Counted before it is written out: a template may take the same large value many times. */
  #copied(value: unknown, depth = 0): unknown {
    if (depth > maxDepth) throw new Unfilled(`a value is nested deeper than ${maxDepth} levels`)
    if (typeof value === 'string') this.#spend(1, value.length + 2)
    else if (typeof value !== 'object' || value === null) this.#spend(1, 1)
    else if (Array.isArray(value)) for (const part of value) this.#copied(part, depth + 1)
    else {
      for (const name of Object.keys(value)) {
        this.#spend(0, name.length + 4)
        this.#copied((value as Record<string, unknown>)[name], depth + 1)
      }
    }
    this.#spend(1, 1)
    return value
  }

  #spend(values: number, characters: number): void {
    this.#values += values
    this.#characters += characters
    if (this.#characters > this.#limits.maxBytes) throw new Unfilled(tooLarge(this.#limits))
    if (this.#values > this.#limits.maxValues)
      throw new Unfilled(`more than ${this.#limits.maxValues} values would be made or copied`)
  }
}

/** Without a prototype: `__proto__` is a name like any other. */
function empty(): Record<string, unknown> {
  return Object.create(null) as Record<string, unknown>
}

function tooLarge({ maxBytes }: FillLimits): string {
  return `the body would be larger than ${maxBytes} bytes`
}

const maxDepth = 256
const defaults: FillLimits = { maxBytes: 262_144, maxValues: 200_000 }
