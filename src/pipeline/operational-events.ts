import { messageOf } from '../core/error.ts'
import { partitionOf } from '../core/partition.ts'
import { headerMap, type OutRecord } from '../core/record.ts'
import type { Clock, Kafka, Observer, Producer } from '../ports.ts'

export interface OperationalEventsDeps {
  readonly kafka: Pick<Kafka, 'partitions'>
  readonly producer: Producer
  readonly clock: Clock
  readonly observer: Observer
  /** Events topic. */
  readonly topic: string
  /** What their types begin with, e.g. `hooktide.`; null: none are produced. */
  readonly prefix: string | null
  /** Does a subscription of the tenant ask for the type? Else nothing is written. */
  wanted(tenant: string, type: string): boolean
}

interface Waiting {
  readonly type: string
  readonly tenant: string
  readonly key: string
  readonly id: string
  readonly body: Buffer
}

/**
 * What happens to a tenant's subscriptions, as events of that tenant. Beside the lanes' transactions on purpose: whoever
 * owns the events topic may refuse us the right to write, and deliveries must not stand still for that. So one may be lost
 * in a crash; ids are made of what happened, so a repeat has the same delivery id.
 */
export class OperationalEvents {
  readonly #deps: OperationalEventsDeps
  #waiting: Waiting[] = []
  #sending = false
  #stopped = false

  constructor(deps: OperationalEventsDeps) {
    this.#deps = deps
  }

  /** Nothing is told about the delivery of what was told: that would never end. */
  isOwn(eventType: string): boolean {
    return this.#deps.prefix !== null && eventType.startsWith(this.#deps.prefix)
  }

  /** `key`: they are ordered by it. `data`: nothing of a secret, no URL. */
  emit(
    what: 'subscription.disabled' | 'subscription.failing' | 'delivery.dead',
    tenant: string,
    key: string,
    id: string,
    atMs: number,
    data: Readonly<Record<string, string | number>>,
  ): void {
    const { prefix, observer, wanted } = this.#deps
    if (prefix === null || this.#stopped || !wanted(tenant, prefix + what)) return
    if (this.#waiting.length >= maxWaiting) {
      observer.count('operational_events_dropped')
      return
    }
    const type = prefix + what
    const body = Buffer.from(JSON.stringify({ type, timestamp: new Date(atMs).toISOString(), data }))
    this.#waiting.push({ type, tenant, key, id, body })
    if (!this.#sending) void this.#send()
  }

  stop(): void {
    this.#stopped = true
  }

  async #send(): Promise<void> {
    const { producer, clock, observer, kafka, topic } = this.#deps
    this.#sending = true
    for (let failures = 0; this.#waiting.length > 0 && !this.#stopped; ) {
      const some = this.#waiting.slice(0, 200)
      try {
        const partitions = (await kafka.partitions([topic])).get(topic) ?? 1
        await producer.send(some.map((event) => recordOf(event, topic, partitions)))
        this.#waiting = this.#waiting.slice(some.length)
        failures = 0
      } catch (error) {
        if (failures++ === 0) {
          const remedy =
            'Give the deliverer the right to write to the events topic, or set operationalEvents.enabled to false.'
          observer.log('warn', 'operational_events.failed', { topic, error: messageOf(error), remedy })
        }
        await new Promise<void>((resolve) => clock.after(Math.min(30_000, 200 * 2 ** Math.min(failures, 8)), resolve))
      }
    }
    this.#sending = false
  }
}

function recordOf({ type, tenant, key, id, body }: Waiting, topic: string, partitions: number): OutRecord {
  const headers = headerMap([
    ['event-type', type],
    ['event-id', id],
    ['event-tenant', tenant],
    ['event-key', key],
    ['content-type', 'application/json'],
  ])
  return { topic, partition: partitionOf(key, partitions), key, value: body, headers }
}

const maxWaiting = 10_000
