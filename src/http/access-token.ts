import type { Result } from '../core/result.ts'
import type { Clock } from '../ports.ts'
import type { FetchedToken } from './token-request.ts'

export interface Token {
  readonly text: string
  readonly header: string
}

export type TokenState =
  | { readonly t: 'token'; readonly token: Token }
  | { readonly t: 'pending' }
  | { readonly t: 'failed'; readonly reason: string }

/** A refusal that follows a refusal is the endpoint's last word, for so long. */
const obstinateMs = 60_000
const firstPauseMs = 1000
const longestPauseMs = 30_000

/**
 * The token of one client at one token server: fetched when it is first asked for, again before it expires, one fetch at
 * a time. A failure stands for a while (doubling up to 30 s), so that a dead token server is not asked per delivery.
 */
export class AccessToken {
  readonly #clock: Clock
  readonly #fetch: () => Promise<Result<FetchedToken>>
  readonly #settled: () => void
  #token:
    | (Token & { accepted: boolean; afterRefusal: boolean; gotMs: number; refreshMs: number; untilMs: number })
    | null = null
  #failure: { reason: string; untilMs: number } | null = null
  #failures = 0
  #fetching = false
  #refusedBefore = false

  /** `fetch` never rejects. `settled`: a fetch that was waited for is over. */
  constructor(clock: Clock, fetch: () => Promise<Result<FetchedToken>>, settled: () => void) {
    this.#clock = clock
    this.#fetch = fetch
    this.#settled = settled
  }

  /** Nothing worth keeping: no token, none under way. */
  get idle(): boolean {
    return !this.#fetching && (this.#token === null || this.#clock.mono() >= this.#token.untilMs)
  }

  state(): TokenState {
    const nowMs = this.#clock.mono()
    const token = this.#token
    const resting = this.#failure !== null && nowMs < this.#failure.untilMs
    if (token !== null && nowMs < token.untilMs) {
      if (nowMs >= token.refreshMs && !resting) this.#begin()
      return { t: 'token', token }
    }
    if (this.#failure !== null && resting) return { t: 'failed', reason: this.#failure.reason }
    this.#begin()
    return { t: 'pending' }
  }

  /** The endpoint answered 401. True: the next attempt has another token. */
  refused(token: object): boolean {
    const current = this.#token
    if (current !== token) return true
    // A fresh token in place of a refused one, refused as well: it is not the token.
    const nowMs = this.#clock.mono()
    if (current.afterRefusal && !current.accepted && nowMs - current.gotMs < obstinateMs) return false
    this.#token = null
    this.#refusedBefore = true
    return true
  }

  accepted(token: object): void {
    if (this.#token === token) this.#token.accepted = true
  }

  #begin(): void {
    if (this.#fetching) return
    this.#fetching = true
    void this.#fetch().then((result) => {
      this.#fetching = false
      const nowMs = this.#clock.mono()
      if (result.ok) {
        const { token, lifetimeMs } = result.value
        this.#failure = null
        this.#failures = 0
        this.#token = {
          text: token,
          header: `Bearer ${token}`,
          accepted: false,
          afterRefusal: this.#refusedBefore,
          gotMs: nowMs,
          refreshMs: nowMs + lifetimeMs - Math.min(60_000, lifetimeMs / 4),
          // It still has to get there.
          untilMs: nowMs + lifetimeMs - Math.min(5000, lifetimeMs / 10),
        }
        this.#refusedBefore = false
      } else {
        const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** this.#failures)
        this.#failures++
        this.#failure = { reason: result.reason, untilMs: nowMs + pauseMs }
      }
      this.#settled()
    })
  }
}
