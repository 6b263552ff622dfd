import { HooktideError } from '../core/error.ts'
import type { EventLimits } from '../core/event.ts'
import { parseEvent } from '../core/event-format.ts'
import { partitionOf } from '../core/partition.ts'
import { headerMap, type OutRecord } from '../core/record.ts'

/** What the command line says of every event; a line of NDJSON can say it of its own. */
export interface EventOptions {
  readonly topic: string
  readonly partitions: number
  readonly limits: EventLimits
  readonly type?: string | undefined
  readonly id?: string | undefined
  readonly tenant?: string | undefined
  readonly key?: string | undefined
  readonly contentType?: string | undefined
  /** Member of a JSON body that holds the type, the id, the key: `action`, `repository.full_name`. */
  readonly typeFrom?: string | undefined
  readonly idFrom?: string | undefined
  readonly keyFrom?: string | undefined
}

/**
 * The record of an event. `number`: 0-based; of a repeated event it keeps ids apart and spreads what has no key over the
 * partitions. Throws `usage`, naming `where`, for what the router would reject.
 */
export function eventRecord(
  body: Buffer,
  options: EventOptions,
  number: number,
  repeated: boolean,
  where: string,
): OutRecord {
  const wantsMembers = (options.typeFrom ?? options.idFrom ?? options.keyFrom) !== undefined
  const data = wantsMembers ? jsonOf(body, where) : null
  const member = (path: string | undefined) => (path === undefined ? undefined : memberText(data, path, where))
  const type = options.type ?? member(options.typeFrom)
  const givenId = options.id ?? member(options.idFrom)
  const id = givenId !== undefined && repeated ? `${givenId}-${number + 1}` : givenId
  const key = options.key ?? member(options.keyFrom)
  const headers = headerMap()
  const put = (name: string, value: string | undefined) => {
    if (value !== undefined) headers[name] = Buffer.from(value)
  }
  put('event-type', type)
  put('event-id', id)
  put('event-tenant', options.tenant)
  put('content-type', options.contentType)
  // Without a header of ours the body is read as an envelope, whose own `key` then decides the partition.
  const record = { offset: 0, timestampMs: 0, key: key === undefined ? null : Buffer.from(key), value: body, headers }
  const parsed = parseEvent(record, { topic: options.topic, partition: 0 }, options.limits)
  if (!parsed.ok) {
    throw new HooktideError('usage', `${where} would be rejected: ${parsed.reason}`, {
      remedy:
        parsed.code === 'too-large'
          ? 'Send less, raise router.maxEventBytes, or set objects.directory or objects.s3 for larger bodies.'
          : 'Give --type (or --type-from FIELD), or a body that says what it is.',
    })
  }
  const orderedBy = parsed.value.orderingKey
  const partition = orderedBy === null ? number % options.partitions : partitionOf(orderedBy, options.partitions)
  return { topic: options.topic, partition, key: orderedBy, value: body, headers }
}

function jsonOf(body: Buffer, where: string): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    throw new HooktideError('usage', `${where} is no JSON, so nothing can be taken from its fields`)
  }
}

function memberText(data: unknown, path: string, where: string): string {
  let at = data
  for (const name of path.split('.')) {
    at =
      typeof at === 'object' && at !== null && Object.hasOwn(at, name)
        ? (at as Record<string, unknown>)[name]
        : undefined
  }
  if (typeof at === 'string' || typeof at === 'number') return String(at)
  throw new HooktideError('usage', `${where} has no text or number at ${path}`)
}
