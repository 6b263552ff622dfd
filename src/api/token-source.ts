import { readFileSync, statSync } from 'node:fs'
import { parse } from 'yaml'
import { type ApiToken, findToken, readApiTokens } from '../core/api-token.ts'
import { HooktideError, messageOf } from '../core/error.ts'
import { problemText } from '../core/result.ts'
import type { Clock, Observer } from '../ports.ts'

/** How old what is known of the file may be: a token that was taken out is refused after this. */
const lookEveryMs = 2_000

/** Tokens of the configuration and of a file that may change while the service runs. */
export class TokenSource {
  readonly #configured: readonly ApiToken[]
  readonly #path: string | null
  readonly #clock: Clock
  readonly #observer: Observer
  #fromFile: readonly ApiToken[] = []
  #version = ''
  #lookedMs = Number.NEGATIVE_INFINITY

  /** Throws `config.invalid` when the file can't be used at the start. */
  constructor(parts: {
    readonly configured: readonly ApiToken[]
    readonly path: string | null
    readonly clock: Clock
    readonly observer: Observer
  }) {
    this.#configured = parts.configured
    this.#path = parts.path
    this.#clock = parts.clock
    this.#observer = parts.observer
    if (this.#path !== null) this.#read(this.#path)
  }

  find(presented: string): ApiToken | null {
    this.#look()
    return findToken([...this.#configured, ...this.#fromFile], presented)
  }

  #look(): void {
    const nowMs = this.#clock.mono()
    if (this.#path === null || nowMs - this.#lookedMs < lookEveryMs) return
    try {
      this.#read(this.#path)
    } catch (error) {
      // Tokens that were good stay good: a slip in the file must not lock everybody out.
      this.#observer.log('error', 'api.tokens_unreadable', { reason: messageOf(error) })
    }
  }

  #read(path: string): void {
    this.#lookedMs = this.#clock.mono()
    try {
      const { mtimeMs, size, ino } = statSync(path)
      const version = `${ino} ${mtimeMs} ${size}`
      if (version === this.#version) return
      const data: unknown = parse(readFileSync(path, 'utf8'), { maxAliasCount: 20 })
      const list = Array.isArray(data) ? data : (data as { tokens?: unknown } | null)?.tokens
      const { tokens, problems } = readApiTokens(list ?? [])
      if (problems.length > 0) throw new Error(problems.map(problemText).join('; '))
      this.#fromFile = tokens
      this.#version = version
    } catch (cause) {
      throw new HooktideError('config.invalid', `api.tokensFile can not be used: ${messageOf(cause)}`, {
        cause,
        remedy:
          'Give the path of a YAML list of {name, hash, scopes, tenant}; `hooktide tokens create` prints entries.',
      })
    }
  }
}
