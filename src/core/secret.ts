const redacted = '***'

/** A text nobody may see by accident: prints as `***` in templates, JSON, logs and `util.inspect`. */
export class Secret {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  /** The text itself; call it where the secret is used and nowhere else. */
  reveal(): string {
    return this.#text
  }

  toString(): string {
    return redacted
  }

  toJSON(): string {
    return redacted
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return redacted
  }
}
