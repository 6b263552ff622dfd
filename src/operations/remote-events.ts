import { claimHeader } from '../core/claim.ts'
import { HooktideError } from '../core/error.ts'
import type { EventLimits } from '../core/event.ts'
import type { OutRecord } from '../core/record.ts'
import type { Appended } from '../ports.ts'
import type { ApiClient } from './api-client.ts'
import type { EventOperations } from './contract.ts'
import type { AcceptedEvent, EventInput } from './ingest.ts'

/** Events through the API: a record becomes what it was made of. */
export function remoteEvents(api: ApiClient): EventOperations {
  return {
    async open(given) {
      const query = { topic: given ?? undefined }
      const target = await api.get<Target>('/events/target', query)
      return {
        ...target,
        // A service of an earlier version says nothing of it.
        maxLargeBytes: target.maxLargeBytes ?? null,
        async send(records) {
          // A batch has a bound of its own, which one of these may fill.
          if (records.some(({ value }) => (value?.length ?? 0) > target.limits.maxBytes)) {
            const appended: Appended[] = []
            for (const record of records)
              appended.push(
                appendedOf(await api.post<AcceptedEvent>('/events', { topic: target.topic, ...inputOf(record) })),
              )
            return appended
          }
          const events = records.map(inputOf)
          const body = { topic: target.topic, events }
          const { events: accepted } = await api.post<{ events: AcceptedEvent[] }>('/events/batch', body)
          return accepted.map(appendedOf)
        },
        close: async () => undefined,
      }
    },
  }
}

interface Target {
  readonly topic: string
  readonly partitions: number
  readonly limits: EventLimits
  readonly maxLargeBytes?: number | null
}

/** No type: the body says what it is (an envelope, or a structured CloudEvent). */
function inputOf({ headers, key, value }: OutRecord): EventInput {
  if (headers[claimHeader] !== undefined) {
    throw new HooktideError('usage', 'a pointer to a body can not go through the API', {
      remedy: 'Hand in the body itself: the service stores it, if it has an object store.',
    })
  }
  const text = (name: string) => headers[name]?.toString()
  return {
    type: text('event-type'),
    id: text('event-id'),
    tenant: text('event-tenant'),
    key: key === null ? undefined : key.toString(),
    contentType: text('content-type'),
    dataBase64: (value ?? Buffer.alloc(0)).toString('base64'),
  }
}

function appendedOf({ topic, partition, offset }: AcceptedEvent): Appended {
  return { topic, partition, firstOffset: offset, count: 1, appendTimeMs: null }
}
