/** What filters and transformations can ask of an event beside its body. */
export interface EventAttributes {
  readonly id: string
  readonly type: string
  readonly tenant: string
  /** Ordering key. */
  readonly key: string | null
  readonly contentType: string
  /** When it was produced, epoch ms. */
  readonly timeMs: number
}

/** Names after `event.` in a path. */
export const attributeNames = ['id', 'type', 'tenant', 'key', 'contentType', 'time'] as const
export type AttributeName = (typeof attributeNames)[number]

/** An event as filters see it: its body is parsed when the first of them asks, and once. */
export class EventFacts {
  readonly #attributes: EventAttributes
  readonly #bytes: Buffer
  #parsed = false
  #body: unknown

  constructor(attributes: EventAttributes, bytes: Buffer) {
    this.#attributes = attributes
    this.#bytes = bytes
  }

  /** `time` as RFC 3339; undefined where the event has none. */
  attribute(name: AttributeName): string | undefined {
    if (name === 'time') return new Date(this.#attributes.timeMs).toISOString()
    return this.#attributes[name] ?? undefined
  }

  /** Undefined: the body is no JSON in UTF-8, and every path into it leads nowhere. */
  get body(): unknown {
    if (!this.#parsed) {
      this.#parsed = true
      try {
        this.#body = JSON.parse(utf8.decode(this.#bytes))
      } catch {
        this.#body = undefined
      }
    }
    return this.#body
  }
}

/** A byte order mark is skipped, as JSON readers may (RFC 8259, 8.1). */
const utf8 = new TextDecoder('utf-8', { fatal: true })
