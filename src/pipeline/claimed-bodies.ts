import type { Claim } from '../core/claim.ts'
import type { Reply } from '../core/outcome.ts'
import type { ObjectFound, Objects } from '../ports/objects.ts'
import type { Clock, Observer } from '../ports.ts'

export interface ClaimedBodiesDeps {
  /** Null: no store is configured here. */
  readonly objects: Objects | null
  readonly clock: Clock
  readonly observer: Observer
  /** Bodies in memory at a time, fetched and being fetched. */
  readonly maxOpenBytes: number
  readonly fetchMs: number
}

export type FetchedBody =
  /** Call `release` when it is not needed any more. */
  { readonly t: 'ready'; readonly body: Buffer; release(): void } | { readonly t: 'failed'; readonly reply: Reply }

/** Fetches claimed bodies for attempts, within a bound of memory and of time. */
export class ClaimedBodies {
  readonly #deps: ClaimedBodiesDeps
  #openBytes = 0
  /** Told once: while the store is away each attempt finds it so. */
  #away = false

  constructor(deps: ClaimedBodiesDeps) {
    this.#deps = deps
  }

  get openBytes(): number {
    return this.#openBytes
  }

  async fetch(claim: Claim): Promise<FetchedBody> {
    const { objects, maxOpenBytes, clock } = this.#deps
    const startedMs = clock.mono()
    const durationMs = () => clock.mono() - startedMs
    const failed = (reply: Reply): FetchedBody => ({ t: 'failed', reply })
    if (objects === null) {
      const detail = 'the body is in an object store, and none is configured here (objects.store)'
      return failed({ t: 'interrupted', detail: this.#gone(detail), durationMs: 0 })
    }
    // Alone it may always go: else one that is larger than the bound would never be sent.
    if (this.#openBytes > 0 && this.#openBytes + claim.bytes > maxOpenBytes)
      return failed({ t: 'interrupted', detail: 'no room for another claimed body now', durationMs: 0 })
    this.#openBytes += claim.bytes
    const release = () => {
      this.#openBytes -= claim.bytes
    }
    const found = await this.#inTime(objects.get(claim))
    if (found.t === 'found') {
      this.#away = false
      return { t: 'ready', body: found.body, release }
    }
    release()
    if (found.t === 'unavailable')
      return failed({ t: 'interrupted', detail: this.#gone(`object store: ${found.detail}`), durationMs: durationMs() })
    const detail = found.t === 'missing' ? `claim: there is no object ${claim.key}` : `claim: ${found.detail}`
    return failed({ t: 'failure', class: 'body', detail, durationMs: durationMs() })
  }

  /** Spends no attempt: nothing is wrong with the endpoint or the event. */
  #gone(detail: string): string {
    this.#deps.observer.count('objects_unavailable')
    if (!this.#away) this.#deps.observer.log('error', 'objects.unavailable', { reason: detail })
    this.#away = true
    return detail
  }

  #inTime(getting: Promise<ObjectFound>): Promise<ObjectFound> {
    return new Promise((resolve) => {
      const { clock, fetchMs } = this.#deps
      const detail = `no answer in ${fetchMs} ms`
      const cancel = clock.after(fetchMs, () => resolve({ t: 'unavailable', detail }))
      void getting.then((found) => {
        cancel()
        resolve(found)
      })
    })
  }
}
