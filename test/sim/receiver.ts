import type { FailureClass, Reply } from '../../src/core/outcome.ts'
import type { Post, Sender } from '../../src/ports.ts'
import type { Answer, Endpoint } from './endpoints.ts'
import type { FakeClock } from './fake-clock.ts'
import { type Random, randomStream } from './random.ts'
import type { SimProcess } from './sim-process.ts'

/** One POST as it happened, on the simulation's true clocks. */
export interface PostEntry {
  readonly deliveryId: string
  readonly subscription: string
  /** Ordering key of the event; null: not ordered. */
  readonly key: string | null
  /** Position of the event in its key, from 0. */
  readonly sequence: number
  readonly attempt: number
  readonly url: string
  readonly process: string
  readonly incarnation: number
  /** Handed to the socket. */
  readonly startMs: number
  /** What the process's own wall clock showed then, and the true one. */
  readonly startLocalMs: number
  readonly startWallMs: number
  /** When the sender learned the outcome; null: never (it died first). */
  endMs: number | null
  /** When the endpoint took the body and said 2xx; null: it did not. */
  acceptedMs: number | null
  /** What the endpoint asked for, ms; null: nothing, or it was not heard. */
  retryAfterMs?: number | null
  /** What a transformation has put into the body. */
  readonly shape?: string
  /** The delivery had come to its end before, and was sent again: this is how often. */
  readonly again?: number
  outcome: 'open' | 'interrupted' | `status ${number}` | `failure ${string}`
}

export interface Described {
  readonly key: string | null
  readonly sequence: number
  readonly shape?: string
}

/** Bodies of simulated events are JSON of `key` and `sequence`. */
export function describeBody(body: Buffer): Described {
  const { key, sequence, shape } = JSON.parse(body.toString()) as Described
  return { key, sequence, ...(shape === undefined ? {} : { shape }) }
}

/** All endpoints of the world, and the book of everything that was POSTed to them. */
export class Receiver {
  readonly posts: PostEntry[] = []
  readonly #clock: FakeClock
  readonly #random: Random
  readonly #network: Random
  readonly #endpoints = new Map<string, { subscription: string; endpoint: Endpoint; n: number }>()
  readonly #defaultTimeoutMs: number

  constructor(clock: FakeClock, options: { seed?: number; timeoutMs?: number } = {}) {
    this.#clock = clock
    this.#random = randomStream(options.seed ?? 1, 'endpoints')
    this.#network = randomStream(options.seed ?? 1, 'network')
    this.#defaultTimeoutMs = options.timeoutMs ?? 10_000
  }

  /** Puts an endpoint at `url`, or another in its place. `subscription` names it in the journal. */
  serve(url: string, subscription: string, endpoint: Endpoint): void {
    this.#endpoints.set(url, { subscription, endpoint, n: this.#endpoints.get(url)?.n ?? 0 })
  }

  /** The sender of one process: it dies with it, and stalls with it. */
  sender(process: SimProcess): Sender {
    const open = new Set<() => void>()
    return {
      post: (post) => this.#post(process, post, open),
      abortAll: () => {
        for (const abort of [...open]) abort()
      },
      close: async () => {
        for (const abort of [...open]) abort()
      },
    }
  }

  /** POSTs the sender has not had an answer to. */
  openPosts(process: SimProcess): PostEntry[] {
    return this.posts.filter(
      (p) => p.endMs === null && p.process === process.id && p.incarnation === process.incarnation,
    )
  }

  #post(process: SimProcess, post: Post, open: Set<() => void>): Promise<Reply> {
    const served = this.#endpoints.get(post.url)
    const startMs = this.#clock.mono()
    const entry: PostEntry = {
      deliveryId: post.deliveryId,
      subscription: served?.subscription ?? 'nobody',
      ...describeBody(post.body),
      attempt: post.attempt,
      url: post.url,
      process: process.id,
      incarnation: process.incarnation,
      startMs,
      startLocalMs: process.now(),
      startWallMs: this.#clock.now(),
      endMs: null,
      acceptedMs: null,
      retryAfterMs: null,
      outcome: 'open',
    }
    this.posts.push(entry)
    return new Promise((resolve) => {
      let over = false
      const finish = (outcome: PostEntry['outcome'], reply: (durationMs: number) => Reply) => {
        if (over) return
        over = true
        open.delete(abort)
        stopDeadline()
        entry.endMs = this.#clock.mono()
        entry.outcome = outcome
        resolve(reply(entry.endMs - startMs))
      }
      const abort = () => finish('interrupted', (durationMs) => ({ t: 'interrupted', detail: 'aborted', durationMs }))
      const stopDeadline = process.after(post.timeoutMs ?? this.#defaultTimeoutMs, () =>
        finish('failure timeout', (durationMs) => ({ t: 'failure', class: 'timeout', detail: 'deadline', durationMs })),
      )
      open.add(abort)
      // Half of the network time there, half back; on its way it no longer depends on the process.
      this.#clock.after(this.#hop(), () => {
        if (served === undefined) {
          this.#back(process, () => finish('failure dns', (ms) => failure('dns', ms)))
          return
        }
        served.n++
        const { deliveryId, attempt } = post
        const nowMs = this.#clock.now()
        const answer = served.endpoint({ n: served.n, deliveryId, attempt, nowMs, random: this.#random })
        this.#answer(process, entry, answer, finish)
      })
    })
  }

  #answer(
    process: SimProcess,
    entry: PostEntry,
    answer: Answer,
    finish: (outcome: PostEntry['outcome'], reply: (durationMs: number) => Reply) => void,
  ): void {
    if (answer.t === 'hang') return
    this.#clock.after(answer.afterMs, () => {
      if (answer.t === 'failure') {
        if (answer.arrived) entry.acceptedMs ??= this.#clock.mono()
        this.#back(process, () => finish(`failure ${answer.class}`, (ms) => failure(answer.class, ms)))
        return
      }
      const { status, retryAfter = null } = answer
      if (status >= 200 && status < 300) entry.acceptedMs ??= this.#clock.mono()
      const excerpt = Buffer.from(`status ${status}`)
      this.#back(process, () => {
        if (entry.outcome === 'open' && retryAfter !== null) entry.retryAfterMs = Number(retryAfter) * 1_000
        finish(`status ${status}`, (durationMs) => ({ t: 'response', status, retryAfter, excerpt, durationMs }))
      })
    })
  }

  #back(process: SimProcess, arrive: () => void): void {
    this.#clock.after(this.#hop(), () => process.enter(arrive))
  }

  #hop(): number {
    return 0.1 + this.#network() * 1.5
  }
}

function failure(reason: FailureClass, durationMs: number): Reply {
  return { t: 'failure', class: reason, detail: reason, durationMs }
}
