import type { Claim } from '../core/claim.ts'
import type { Reply } from '../core/outcome.ts'
import type { ObjectFound, Objects } from '../ports/objects.ts'
import type { Clock, Observer } from '../ports.ts'
import { StoreOutage } from './store-outage.ts'

export interface ClaimedBodiesDeps {
  /** Null: no store is configured here. */
  readonly objects: Objects | null
  readonly clock: Clock
  readonly observer: Observer
  /** Bodies in memory at a time, fetched and being fetched. */
  readonly maxOpenBytes: number
  readonly fetchMs: number
  /** The store answers again: what waits for it can go. */
  back(): void
}

export type FetchedBody =
  /** Call `release` when it is not needed any more. */
  { readonly t: 'ready'; readonly body: Buffer; release(): void } | { readonly t: 'failed'; readonly reply: Reply }

/** Fetches claimed bodies for attempts, within a bound of memory and of time. */
export class ClaimedBodies {
  readonly #deps: ClaimedBodiesDeps
  readonly #outage: StoreOutage
  #openBytes = 0
  /** Told once: while the store is away each attempt finds it so. */
  #away = false

  constructor(deps: ClaimedBodiesDeps) {
    this.#deps = deps
    this.#outage = new StoreOutage(deps.clock)
  }

  get openBytes(): number {
    return this.#openBytes
  }

  /** How long a delivery of this body must wait before it is worth a slot. */
  waitMs(claim: Claim): number {
    return this.#outage.waitMs(claim)
  }

  async fetch(claim: Claim): Promise<FetchedBody> {
    const { objects, maxOpenBytes, clock } = this.#deps
    const startedMs = clock.mono()
    const durationMs = () => clock.mono() - startedMs
    const failed = (reply: Reply): FetchedBody => ({ t: 'failed', reply })
    if (objects === null) {
      const detail = 'the body is in an object store, and none is configured here (objects.store)'
      return failed({ t: 'interrupted', detail: this.#gone(claim, detail), durationMs: 0 })
    }
    // Alone it may always go: else one that is larger than the bound would never be sent.
    if (this.#openBytes > 0 && this.#openBytes + claim.bytes > maxOpenBytes)
      return failed({ t: 'interrupted', detail: 'no room for another claimed body now', durationMs: 0 })
    this.#openBytes += claim.bytes
    this.#outage.asked()
    const release = () => {
      this.#openBytes -= claim.bytes
    }
    const found = await this.#inTime(objects.get(claim))
    if (found.t !== 'unavailable') {
      if (this.#away) this.#deps.observer.log('info', 'objects.available')
      this.#away = false
      if (this.#outage.answered(claim)) this.#deps.back()
    }
    if (found.t === 'found') return { t: 'ready', body: found.body, release }
    release()
    if (found.t === 'unavailable') {
      const detail = this.#gone(claim, `object store: ${found.detail}`)
      return failed({ t: 'interrupted', detail, durationMs: durationMs() })
    }
    const detail = found.t === 'missing' ? `claim: there is no object ${claim.key}` : `claim: ${found.detail}`
    return failed({ t: 'failure', class: 'body', detail, durationMs: durationMs() })
  }

  /** Spends no attempt: nothing is wrong with the endpoint or the event. */
  #gone(claim: Claim, detail: string): string {
    this.#outage.failed(claim)
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
