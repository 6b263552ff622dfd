import type { DeadLetter } from '../core/dead-letter.ts'
import { encodeOrigin } from '../core/delivery.ts'
import { headerTexts } from '../schema/decode.ts'

/** Stable shape of one dead letter. */
export interface DeadJson {
  readonly deliveryId: string | null
  readonly subscriptionId: string | null
  readonly tenant: string | null
  readonly eventId: string | null
  readonly eventType: string | null
  readonly contentType: string | null
  readonly orderingKey: string | null
  readonly attempts: number | null
  readonly reason: string
  readonly error: string | null
  readonly deadAtMs: number
  readonly eventTimeMs: number | null
  readonly origin: string | null
  readonly bytes: number
  readonly partition: number
  readonly offset: number
}

export interface DeadShown extends DeadJson {
  /** How often it died; this is the last. */
  readonly times: number
  readonly headers: Readonly<Record<string, string>>
  /** Base64. */
  readonly body: string
}

export function deadJson(letter: DeadLetter): DeadJson {
  const { partition, record, delivery, problem, reason, deadAtMs } = letter
  return {
    deliveryId: delivery?.id ?? null,
    subscriptionId: delivery?.subscriptionId ?? record.key?.toString() ?? null,
    tenant: delivery?.tenant ?? null,
    eventId: delivery?.eventId ?? null,
    eventType: delivery?.eventType ?? null,
    contentType: delivery?.contentType ?? null,
    orderingKey: delivery?.orderingKey ?? null,
    attempts: delivery?.attempts ?? null,
    reason,
    error: delivery?.lastError ?? problem,
    deadAtMs,
    eventTimeMs: delivery?.eventTimeMs ?? null,
    origin: delivery === null ? null : encodeOrigin(delivery.origin),
    bytes: record.value?.length ?? 0,
    partition,
    offset: record.offset,
  }
}

export function deadShown(letter: DeadLetter, times: number): DeadShown {
  const { headers, value } = letter.record
  return {
    ...deadJson(letter),
    times,
    headers: headerTexts(headers),
    body: (value ?? Buffer.alloc(0)).toString('base64'),
  }
}
