import { messageOf } from '../core/error.ts'
import { emptyHeaders } from '../core/record.ts'
import type { Subscription } from '../core/subscription.ts'
import type { Clock, Observer, Producer } from '../ports.ts'
import type { OperationalEvents } from './operational-events.ts'
import type { Death, Failing } from './troubles.ts'

export interface SubscriptionLifeDeps {
  /** Of subscriptions. */
  readonly topic: string
  readonly producer: Producer
  readonly clock: Clock
  readonly observer: Observer
  readonly events: OperationalEvents
  current(id: string): Subscription | undefined
}

/**
 * What befalls subscriptions: an endpoint that answers 410, or has failed for too long, is disabled. This process treats
 * it so at once (`Subscriptions.disable`); here it is written down for all, until the record is there or was changed.
 */
export class SubscriptionLife {
  readonly #deps: SubscriptionLifeDeps
  /** Versions (`updatedAtMs`) being written down. */
  readonly #writing = new Map<string, number>()
  #stopped = false

  constructor(deps: SubscriptionLifeDeps) {
    this.#deps = deps
  }

  disabled(subscription: Subscription, reason: string, since: Failing | null): void {
    const { id, updatedAtMs } = subscription
    if (this.#writing.get(id) === updatedAtMs) return
    this.#writing.set(id, updatedAtMs)
    void this.#write(subscription, reason, since)
  }

  failing(subscription: Subscription, { sinceMs, failures, error }: Failing): void {
    const { observer, clock, events } = this.#deps
    const { id, tenant } = subscription
    observer.log('warn', 'subscription.failing', { subscriptionId: id, sinceMs, failures, error })
    observer.count('subscriptions_failing')
    const data = { subscriptionId: id, since: timeOf(sinceMs), failures, error }
    events.emit('subscription.failing', tenant, id, `failing:${id}:${sinceMs}`, clock.now(), data)
  }

  dead({ delivery, attempts, reason, error, atMs }: Death): void {
    const { id, subscriptionId, tenant, eventId, eventType } = delivery
    if (this.#deps.events.isOwn(eventType)) return
    const data = { deliveryId: id, subscriptionId, eventId, eventType, attempts, reason, error }
    this.#deps.events.emit('delivery.dead', tenant, subscriptionId, `dead:${id}:${attempts}`, atMs, data)
  }

  stop(): void {
    this.#stopped = true
  }

  async #write(was: Subscription, reason: string, since: Failing | null): Promise<void> {
    const { topic, producer, clock, observer, events, current } = this.#deps
    const { id, tenant, updatedAtMs } = was
    const atMs = Math.max(Math.floor(clock.now()), updatedAtMs + 1)
    for (let failures = 0; !this.#stopped; failures++) {
      const now = current(id)
      // Changed, removed or disabled by somebody else meanwhile: theirs counts.
      if (now === undefined || now.updatedAtMs !== updatedAtMs) break
      const disabled: Subscription = { ...now, status: 'disabled', statusReason: reason, updatedAtMs: atMs }
      const value = Buffer.from(JSON.stringify(disabled))
      try {
        await producer.send([{ topic, partition: 0, key: id, value, headers: emptyHeaders }])
        observer.log('warn', 'subscription.disabled', { subscriptionId: id, reason })
        observer.count('subscriptions_disabled')
        const data = { subscriptionId: id, reason, ...(since === null ? {} : { since: timeOf(since.sinceMs) }) }
        events.emit('subscription.disabled', tenant, id, `disabled:${id}:${updatedAtMs}`, atMs, data)
        break
      } catch (error) {
        const fields = { subscriptionId: id, error: messageOf(error) }
        if (failures === 0) observer.log('warn', 'subscription.disable_failed', fields)
        await new Promise<void>((resolve) => clock.after(Math.min(30_000, 200 * 2 ** Math.min(failures, 8)), resolve))
      }
    }
    this.#writing.delete(id)
  }
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}
