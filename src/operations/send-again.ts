import { randomBytes } from 'node:crypto'
import { type Delivery, encodeDelivery } from '../core/delivery.ts'
import { HooktideError } from '../core/error.ts'
import { laneOf } from '../core/partition.ts'
import type { RedriveReport } from './contract.ts'
import { topicNames } from './names.ts'
import type { OperationParts } from './parts.ts'
import { partitionsOf } from './read-topic.ts'

/** Writes a delivery that is final to `deliveries` again: same id, same body, attempts counted anew; a stream of its own. */
export async function sendAgain(parts: OperationParts, delivery: Delivery): Promise<RedriveReport> {
  const { kafka, config, clock, control } = parts
  const { id, subscriptionId } = delivery
  const entry = (await parts.subscriptions.read()).get(subscriptionId)
  if (entry?.ok !== true) {
    throw new HooktideError('conflict', `subscription ${subscriptionId} is gone: nothing would come of it`, {
      remedy: 'Make the subscription again under the same id first.',
    })
  }
  // A cancel that still holds would settle it again at once.
  if ((await control.order({ kind: 'delivery', target: id })) !== null) await control.clear([`delivery:${id}`])
  const topic = topicNames(config).deliveries
  const lanes = await partitionsOf(kafka, topic)
  const job = `${Math.floor(clock.now()).toString(36)}-${randomBytes(4).toString('hex')}`
  const origin = { stream: `redrive:${job}`, generation: 1, offset: 0 }
  const headers = encodeDelivery({ ...delivery, origin, attempts: 0, dueMs: null, lastError: null })
  const producer = kafka.producer()
  try {
    const partition = laneOf(entry.value, id, lanes)
    await producer.send([{ topic, partition, key: subscriptionId, value: delivery.body, headers }])
  } finally {
    await producer.close()
  }
  const none = { repeated: 0, unreadable: 0, orphaned: 0, notFound: [] }
  return { job, dryRun: false, redriven: 1, ...none, interrupted: false, cursor: null }
}
