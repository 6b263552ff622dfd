import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { ReceivedRequest } from '../cli/receiver.ts'

/** One request as the receiver saw it, with what the check needs of it. */
export interface Request {
  /** Order of arrival at its endpoint, from 1. */
  readonly number: number
  /** The newest request's number at the time of the answer. */
  readonly newest: number
  readonly atMs: number
  readonly path: string
  readonly deliveryId: string
  readonly idempotencyKey: string
  readonly attempt: number | null
  readonly status: number | null
  /** Null: the signature is right; else what is wrong with it. */
  readonly signatureProblem: string | null
  readonly digest: string
}

/** What the endpoints saw, in the order of the answers. */
export class Journal {
  readonly requests: Request[] = []
  readonly #secret: string

  /** `secret`: `whsec_…`. */
  constructor(secret: string) {
    this.#secret = secret
  }

  readonly add = (request: ReceivedRequest): void => {
    const { number, newest, atMs, path, deliveryId, attempt, status, headers, body } = request
    const signatureProblem = signatureProblemOf(this.#secret, headers, body, atMs)
    const idempotencyKey = headers['idempotency-key'] ?? ''
    const digest = digestOf(body)
    this.requests.push({
      number,
      newest,
      atMs,
      path,
      deliveryId,
      idempotencyKey,
      attempt,
      status,
      signatureProblem,
      digest,
    })
  }
}

export function digestOf(body: Buffer): string {
  return createHash('sha256').update(body).digest('base64url')
}

/**
 * Standard Webhooks as a receiver of another make would verify it: shares no code with what signs. Null: verified.
 * Source: https://github.com/standard-webhooks/standard-webhooks, "Signature scheme".
 */
export function signatureProblemOf(
  secret: string,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
  nowMs: number,
): string | null {
  const id = headers['webhook-id']
  const timestamp = headers['webhook-timestamp']
  const signatures = headers['webhook-signature']
  if (id === undefined || timestamp === undefined || signatures === undefined) return 'unsigned'
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > 300) return `timestamp ${timestamp} is out of range`
  const hmac = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
  const wanted = Buffer.from(`v1,${hmac.update(`${id}.${timestamp}.`).update(body).digest('base64')}`)
  for (const signature of signatures.split(' ')) {
    const given = Buffer.from(signature)
    if (given.length === wanted.length && timingSafeEqual(given, wanted)) return null
  }
  return 'no signature matches'
}
