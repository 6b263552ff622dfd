import type { Config } from '../config.ts'
import { HooktideError } from '../core/error.ts'
import { partitionOf } from '../core/partition.ts'
import { emptyHeaders } from '../core/record.ts'
import type { Secret } from '../core/secret.ts'
import type { SecretReference, Subscription } from '../core/subscription.ts'
import type { Clock, Kafka } from '../ports.ts'
import { confirmWritten, partitionsOf, readLatest } from './read-topic.ts'
import type { SecretTools } from './tools.ts'

export interface MadeSecret {
  readonly ref: string
  /** To be shown once, and never written anywhere in clear. */
  readonly secret: Secret
}

/** Makes a signing secret, seals it under the master key and writes it to the `secrets` topic under a fresh id. */
export async function makeSealedSecret(
  parts: { readonly kafka: Kafka; readonly config: Config; readonly clock: Clock; readonly tools: SecretTools },
  topic: string,
  subscriptionId: string,
): Promise<MadeSecret> {
  const { kafka, config, clock, tools } = parts
  const keys = tools.masterKeys(config)
  if (!keys.ok) {
    throw new HooktideError('secret.unavailable', `kafka:new needs the master key: ${keys.reason}`, {
      remedy: 'Set secrets.masterKeyRef to env:NAME or file:PATH of `keyid:BASE64`, or give --secret env:NAME.',
    })
  }
  const count = await partitionsOf(kafka, topic)
  const reader = kafka.reader()
  const producer = kafka.producer()
  try {
    const ends = await reader.ends(topic)
    const id = freshId(subscriptionId, new Set((await readLatest(reader, topic)).keys()))
    const secret = tools.newSigningSecret()
    const sealed = tools.seal({ id, version: 1, text: secret, createdAtMs: clock.now() }, keys.value.current)
    const value = Buffer.from(JSON.stringify(sealed))
    const records = [{ topic, partition: partitionOf(id, count), key: id, value, headers: emptyHeaders }]
    await confirmWritten(reader, clock, records, await producer.send(records), ends)
    return { ref: `kafka:${id}`, secret }
  } finally {
    await Promise.all([reader.close(), producer.close()])
  }
}

/** Named after its subscription; the first free number. Ids of secrets have no colon. */
export function freshId(subscriptionId: string, taken: ReadonlySet<string>): string {
  const base = subscriptionId.replaceAll(':', '-').slice(0, 90)
  let n = 1
  while (taken.has(`${base}.${n}`)) n++
  return `${base}.${n}`
}

/**
 * The secrets after a rotation: the new one first; the old ones sign beside it for `overlapMs`, so receivers can change
 * over without refusing anything. What has run out already is dropped.
 */
export function rotated(
  before: Subscription['secrets'],
  ref: string,
  nowMs: number,
  overlapMs: number,
): readonly SecretReference[] {
  const untilMs = nowMs + overlapMs
  const old = before.flatMap((secret): SecretReference[] => {
    if (secret.ref === ref || (secret.untilMs ?? Number.POSITIVE_INFINITY) <= nowMs) return []
    if (overlapMs <= 0 || (secret.fromMs ?? 0) >= untilMs) return []
    return [{ ...secret, untilMs: Math.min(secret.untilMs ?? untilMs, untilMs) }]
  })
  // The schema's bound; the newest stay.
  return [{ ref }, ...old].slice(0, 10)
}
