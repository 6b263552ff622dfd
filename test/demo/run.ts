import { createHmac } from 'node:crypto'
import type { Attempt } from '../../src/core/attempt.ts'
import type { DeliverySeen, Evidence, SubscriptionSeen } from '../../src/demo/evidence.ts'
import type { Request } from '../../src/demo/journal.ts'

/** A run as it should be, small enough to be read: three events of one key for an ordered, a broken and a gone endpoint. */
export function goodRun(): Evidence {
  const requests: Request[] = []
  const attempts: Attempt[] = []
  const post = (
    id: string,
    attempt: number,
    status: number,
    settlement: Attempt['settlement'],
    dueMs: number | null = null,
  ) => {
    const [eventId = '', subscriptionId = ''] = id.split('@')
    const number = requests.length + 1
    requests.push({
      number,
      newest: number,
      atMs: 1000 * number,
      path: `/${subscriptionId}`,
      deliveryId: id,
      idempotencyKey: id,
      attempt,
      status,
      signatureProblem: null,
      digest: `body of ${eventId}`,
    })
    attempts.push(logged(id, attempt, status, settlement, dueMs))
  }
  post('e1@ordered', 1, 200, 'done')
  post('e2@ordered', 1, 503, 'scheduled', 2500)
  post('e2@ordered', 2, 200, 'done')
  post('e3@ordered', 1, 200, 'done')
  post('e1@broken', 1, 400, 'dead')
  post('e2@broken', 1, 400, 'dead')
  post('e3@broken', 1, 400, 'dead')
  post('e1@gone', 1, 410, 'dead')
  const dead = (deliveryId: string, reason: string) => {
    return { deliveryId, subscriptionId: deliveryId.split('@')[1] as string, reason, attempts: 1 }
  }
  return {
    produced: 3,
    maxAttempts: 10,
    events: [1, 2, 3].map((n) => ({
      id: `e${n}`,
      type: 'push',
      key: 'octocat/hello',
      partition: 0,
      offset: n * 10,
      timeMs: 900,
      digest: `body of e${n}`,
    })),
    subscriptions: [
      subscription('ordered', 'delivered'),
      subscription('broken', 'rejected'),
      subscription('gone', 'gone'),
    ],
    // Of `gone`, e2 was routed before it was disabled and stands there undone; e3 was not matched any more.
    deliveries: [
      ...['e1', 'e2', 'e3'].flatMap((event) => [delivery(`${event}@ordered`), delivery(`${event}@broken`)]),
      delivery('e1@gone'),
      { ...delivery('e2@gone'), done: false },
    ],
    attempts,
    tierMoves: [{ tier: 'retry-500ms', deliveryId: 'e2@ordered', attempts: 1, dueMs: 2500, done: true }],
    dead: [
      dead('e1@broken', 'rejected'),
      dead('e2@broken', 'rejected'),
      dead('e3@broken', 'rejected'),
      dead('e1@gone', 'gone'),
    ],
    parked: new Set(),
    rejected: [],
    requests,
  }
}

export function delivery(id: string): DeliverySeen {
  const [eventId = '', subscriptionId = ''] = id.split('@')
  return { id, eventId, subscriptionId, done: true }
}

export function logged(
  deliveryId: string,
  attempt: number,
  status: number,
  settlement: Attempt['settlement'],
  dueMs: number | null = null,
): Attempt {
  const [eventId = '', subscriptionId = ''] = deliveryId.split('@')
  const outcome = status < 300 ? 'delivered' : status === 410 ? 'gone' : status === 400 ? 'rejected' : 'retryable'
  return {
    v: 1,
    deliveryId,
    subscriptionId,
    tenant: 'default',
    eventId,
    eventType: 'push',
    attempt,
    startedAtMs: 1000,
    durationMs: 1,
    status,
    error: null,
    errorClass: null,
    outcome,
    settlement,
    dueMs,
    excerpt: '',
    url: `http://127.0.0.1/${subscriptionId}`,
    lane: 0,
    origin: 'events/0:0:1',
  }
}

function subscription(id: string, expect: SubscriptionSeen['expect']): SubscriptionSeen {
  return { id, types: ['*'], ordered: true, path: `/${id}`, expect, status: id === 'gone' ? 'disabled' : 'active' }
}

/** What a sender that has the secret would sign. */
export function signed(secretBytes: Buffer, id: string, timestampS: number, body: Buffer): Record<string, string> {
  const signature = createHmac('sha256', secretBytes).update(`${id}.${timestampS}.`).update(body).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': String(timestampS), 'webhook-signature': `v1,${signature}` }
}
