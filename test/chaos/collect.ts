import type { Config } from '../../src/config.ts'
import { decodeDelivery, lineHeader } from '../../src/core/delivery.ts'
import { groupNames, topicNames } from '../../src/operations/names.ts'
import { readLatest, readTopic } from '../../src/operations/read-topic.ts'
import type { Kafka } from '../../src/ports.ts'
import { decodeAttempt } from '../../src/schema/decode.ts'
import type { Evidence, Place, Settled } from '../sim/evidence.ts'
import { MarkedLog } from './marked-log.ts'
import { committedPositions } from './offsets-log.ts'

export type FromLogs = Pick<Evidence, 'places' | 'settled' | 'positions' | 'lines'> & {
  readonly problems: readonly string[]
}

/** What a round left in Kafka: all that is committed, and since when. */
export async function collectLogs(kafka: Kafka, config: Config): Promise<FromLogs> {
  const topics = topicNames(config)
  const reader = kafka.reader()
  const log = new MarkedLog(config.kafka.brokers.join(','))
  const problems: string[] = []
  try {
    const places: Place[] = []
    const read = async (kind: Place['kind'], topic: string, delayMs = 0) => {
      places.push(...(await placesOf(log, kind, topic, delayMs, problems)))
    }
    await read('deliveries', topics.deliveries)
    for (const { topic, delayMs } of topics.tiers) await read('tier', topic, delayMs)
    await read('parked', topics.parked)
    await read('dead', topics.dead)
    const settled: Settled[] = []
    for (const { record, decidedMs } of await log.read(topics.attempts)) {
      const decoded = decodeAttempt(record)
      if (!decoded.ok) {
        problems.push(`log: a record of ${topics.attempts} can not be read: ${decoded.reason}`)
        continue
      }
      const attempt = decoded.value
      settled.push({ appendedMs: record.timestampMs, decidedMs, attempt })
    }
    for await (const { record } of readTopic(reader, topics.rejected))
      problems.push(`log: ${topics.rejected} holds ${JSON.stringify(record.headers['ht-reason']?.toString() ?? '')}`)
    const lines = [...(await readLatest(reader, topics.laneState))]
      .filter(([key]) => key.startsWith('line:'))
      .map(([key, { partition, record }]) => `${partition} ${key} ${record.value?.toString()}`)
    return {
      places,
      settled,
      lines,
      problems,
      positions: committedPositions(await log.read('__consumer_offsets'), groupNames(config).deliverer),
    }
  } finally {
    await reader.close()
  }
}

async function placesOf(
  log: MarkedLog,
  kind: Place['kind'],
  topic: string,
  delayMs: number,
  problems: string[],
): Promise<Place[]> {
  const places: Place[] = []
  for (const { partition, record, decidedMs } of await log.read(topic)) {
    const decoded = decodeDelivery(record)
    if (!decoded.ok) {
      problems.push(`log: ${topic}/${partition}@${record.offset} can not be read: ${decoded.reason}`)
      continue
    }
    if (kind === 'parked' && record.headers[lineHeader] === undefined)
      problems.push(`log: ${topic}/${partition}@${record.offset} is parked without a line`)
    const { timestampMs, offset } = record
    // Bodies are slices of whole fetch responses: keep a copy.
    const delivery = { ...decoded.value, body: Buffer.from(decoded.value.body) }
    places.push({
      kind,
      topic,
      partition,
      offset,
      timestampMs,
      appendedMs: timestampMs,
      decidedMs,
      delayMs,
      delivery,
    })
  }
  return places
}
