import { messageOf } from '../core/error.ts'
import { emptyHeaders } from '../core/record.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Clock, Observer, Producer } from '../ports.ts'

/**
 * An endpoint that answers 410 wants nothing any more: its subscription is disabled at once. Written once per version of
 * the subscription; should the write fail, the next 410 brings it again.
 */
export class DisableGone {
  readonly #topic: string
  readonly #producer: Producer
  readonly #clock: Clock
  readonly #observer: Observer
  readonly #current: (id: string) => Subscription | undefined
  /** Versions (`updatedAtMs`) written down and perhaps not in the table yet. */
  readonly #written = new Map<string, number>()

  constructor(parts: {
    readonly topic: string
    readonly producer: Producer
    readonly clock: Clock
    readonly observer: Observer
    readonly current: (id: string) => Subscription | undefined
  }) {
    this.#topic = parts.topic
    this.#producer = parts.producer
    this.#clock = parts.clock
    this.#observer = parts.observer
    this.#current = parts.current
  }

  gone(answered: Subscription): void {
    const { id } = answered
    const now = this.#current(id)
    // A changed URL was not what answered 410.
    if (
      now === undefined ||
      now.status === 'disabled' ||
      now.url !== answered.url ||
      this.#written.get(id) === now.updatedAtMs
    )
      return
    this.#written.set(id, now.updatedAtMs)
    const disabled: Subscription = {
      ...now,
      status: 'disabled',
      statusReason: 'the endpoint answered 410 Gone',
      updatedAtMs: Math.floor(this.#clock.now()),
    }
    const record = {
      topic: this.#topic,
      partition: 0,
      key: id,
      value: Buffer.from(JSON.stringify(disabled)),
      headers: emptyHeaders,
    }
    this.#producer.send([record]).then(
      () => {
        this.#observer.log('warn', 'subscription.disabled', { subscriptionId: id, reason: disabled.statusReason })
        this.#observer.count('subscriptions_disabled')
      },
      (error: unknown) => {
        this.#written.delete(id)
        this.#observer.log('warn', 'subscription.disable_failed', { subscriptionId: id, error: messageOf(error) })
      },
    )
  }
}
