import { claimFor, claimHeader, encodeClaim } from '../core/claim.ts'
import { HooktideError } from '../core/error.ts'
import type { OutRecord } from '../core/record.ts'
import type { Objects } from '../ports/objects.ts'

/** The record of an event whose body is too large for one: stores the body first. Rejects with what the store says. */
export async function claimEvent(record: OutRecord, body: Buffer, objects: Objects, nowMs: number): Promise<OutRecord> {
  if (record.headers['event-type'] === undefined) {
    throw new HooktideError('usage', 'an event whose body is stored apart needs its type beside it', {
      remedy: 'Give --type, or --type-from FIELD.',
    })
  }
  const claim = claimFor(body, nowMs)
  await objects.put(claim, body)
  return {
    ...record,
    value: Buffer.alloc(0),
    headers: { ...record.headers, [claimHeader]: Buffer.from(encodeClaim(claim)) },
  }
}
