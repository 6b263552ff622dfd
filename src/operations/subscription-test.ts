import { randomBytes } from 'node:crypto'
import { encodeDelivery } from '../core/delivery.ts'
import { deliveryId } from '../core/delivery-id.ts'
import { HooktideError } from '../core/error.ts'
import { laneOf } from '../core/partition.ts'
import type { Subscription } from '../core/subscription.ts'
import { topicNames } from './names.ts'
import type { OperationParts } from './parts.ts'
import { partitionsOf } from './read-topic.ts'

export const testEventType = 'hooktide.test'

/**
 * Writes one delivery for this subscription alone, past the router. All tests of one subscription are one stream whose
 * generation is the time, so that lanes remember one mark for them, not one for each.
 */
export async function sendTest(
  { kafka, config, clock }: OperationParts,
  subscription: Subscription,
): Promise<{ readonly deliveryId: string; readonly eventId: string }> {
  const { id: subscriptionId, tenant, status } = subscription
  if (status !== 'active') {
    throw new HooktideError(
      'conflict',
      `subscription ${subscriptionId} is ${status}: a test would wait, or be dropped`,
      {
        remedy: 'Resume it first.',
      },
    )
  }
  const topic = topicNames(config).deliveries
  const lanes = await partitionsOf(kafka, topic)
  const nowMs = Math.floor(clock.now())
  const eventId = `test_${nowMs.toString(36)}_${randomBytes(6).toString('hex')}`
  const id = deliveryId({ t: 'given', topic: testEventType, id: eventId }, subscriptionId)
  const headers = encodeDelivery({
    id,
    subscriptionId,
    tenant,
    eventId,
    eventType: testEventType,
    contentType: 'application/json',
    orderingKey: null,
    origin: { stream: `test:${subscriptionId}`, generation: nowMs, offset: 0 },
    eventTimeMs: nowMs,
    attempts: 0,
    dueMs: null,
    lastError: null,
    traceparent: null,
  })
  const data = { subscriptionId, message: 'A test of this endpoint, sent because somebody asked for it.' }
  const body = { type: testEventType, id: eventId, timestamp: new Date(nowMs).toISOString(), data }
  const producer = kafka.producer()
  try {
    const value = Buffer.from(JSON.stringify(body))
    await producer.send([{ topic, partition: laneOf(subscription, id, lanes), key: subscriptionId, value, headers }])
  } finally {
    await producer.close()
  }
  return { deliveryId: id, eventId }
}
