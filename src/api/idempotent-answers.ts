import { createHash } from 'node:crypto'
import { HooktideError } from '../core/error.ts'
import type { Clock } from '../ports.ts'

interface Known {
  readonly fingerprint: string
  readonly value: Promise<unknown>
  readonly atMs: number
}

/**
 * What was answered under an idempotency key, for some minutes and a bounded number of keys: spares Kafka the repeat. It is
 * a help, not the promise: that is the event's id, which is made of the key and is the same in every process.
 */
export class IdempotentAnswers {
  readonly #clock: Clock
  readonly #most: number
  readonly #keepMs: number
  readonly #known = new Map<string, Known>()

  constructor(clock: Clock, most = 20_000, keepMs = 600_000) {
    this.#clock = clock
    this.#most = most
    this.#keepMs = keepMs
  }

  /** Rejects `conflict` when the key stands for another body. A failure is not kept: the next call tries again. */
  async once(key: string, body: unknown, run: () => Promise<unknown>): Promise<{ repeated: boolean; value: unknown }> {
    const nowMs = this.#clock.mono()
    const fingerprint = createHash('sha256').update(JSON.stringify(body)).digest('base64')
    const before = this.#known.get(key)
    if (before !== undefined && nowMs - before.atMs < this.#keepMs) {
      if (before.fingerprint === fingerprint) return { repeated: true, value: await before.value }
      throw new HooktideError('idempotency.conflict', 'this Idempotency-Key was used for something else', {
        remedy: 'Use a key of its own for each request, and the same body when it is sent again.',
      })
    }
    const value = run()
    this.#known.delete(key)
    this.#known.set(key, { fingerprint, value, atMs: nowMs })
    if (this.#known.size > this.#most) this.#known.delete(this.#known.keys().next().value as string)
    try {
      return { repeated: false, value: await value }
    } catch (error) {
      this.#known.delete(key)
      throw error
    }
  }
}
