import { HooktideError } from '../core/error.ts'
import type { EventInput } from '../operations/ingest.ts'
import type { IdempotentAnswers } from './idempotent-answers.ts'
import { ref, text } from './json-schema.ts'
import type { ApiAnswer, ApiCall, ApiRoute } from './route.ts'

const tag = 'Events'
const headers = {
  'Idempotency-Key':
    'Events without an id get one that is made of it: what is sent again under the same key is the same event, with the same deliveries.',
}

/**
 * `answers`: what was answered under a key, for as long as this process remembers it. `maxLargeBytes`: bodies of single events
 * go up to this, the larger ones into the object store; null: there is none.
 */
export function eventRoutes(answers: IdempotentAnswers, maxLargeBytes: number | null): readonly ApiRoute[] {
  return [
    {
      method: 'POST',
      path: '/v1/events',
      scope: 'write',
      tag,
      summary: 'Hand in an event',
      description:
        'Answered when Kafka has acknowledged it with acks=all. With an object store (objects.*) bodies may be as large as objects.maxBytes; above router.maxEventBytes the type stands beside them.',
      body: ref('Event'),
      ...(maxLargeBytes === null ? {} : { maxBodyBytes: bodyLimit(maxLargeBytes) }),
      headers,
      status: 202,
      answer: 'AcceptedEvent',
      handle: (call) => {
        const { topic, ...event } = call.body as EventInput & { topic?: string }
        return once(answers, call, async (idempotencyKey) => {
          const [accepted] = await call.ingest.accept([event], call.caller, { topic: topic ?? null, idempotencyKey })
          return accepted
        })
      },
    },
    {
      method: 'POST',
      path: '/v1/events/batch',
      scope: 'write',
      tag,
      summary: 'Hand in up to 1000 events',
      description:
        'Answered when Kafka has acknowledged all of them; one that can not be taken refuses the whole batch.',
      body: ref('EventBatch'),
      maxBodyBytes: 8 * 1024 * 1024,
      headers,
      status: 202,
      answer: 'AcceptedEvents',
      handle: (call) => {
        const { topic, events } = call.body as { topic?: string; events: EventInput[] }
        refuseTopics(events)
        return once(answers, call, async (idempotencyKey) => ({
          events: await call.ingest.accept(events, call.caller, { topic: topic ?? null, idempotencyKey }),
        }))
      },
    },
    {
      method: 'GET',
      path: '/v1/events/target',
      scope: 'read',
      tag,
      summary: 'Where events go, and their limits',
      query: { topic: text(249) },
      status: 200,
      answer: 'EventTarget',
      async handle({ ingest, query }) {
        return { body: await ingest.target((query as { topic?: string }).topic ?? null) }
      },
    },
  ]
}

/** As base64 in JSON. */
export function bodyLimit(eventBytes: number): number {
  return Math.ceil(eventBytes * 1.4) + 64 * 1024
}

async function once(
  answers: IdempotentAnswers,
  call: ApiCall,
  run: (key: string | null) => Promise<unknown>,
): Promise<ApiAnswer> {
  const key = call.header('idempotency-key') ?? null
  if (key === null) return { status: 202, body: await run(null) }
  if (key === '' || key.length > 256 || !/^[\x21-\x7e]+$/.test(key)) {
    throw new HooktideError('usage', 'Idempotency-Key is malformed', {
      problems: [
        {
          field: 'Idempotency-Key',
          value: '',
          message: 'is malformed',
          remedy: 'use 1 to 256 visible ASCII characters',
        },
      ],
    })
  }
  const { repeated, value } = await answers.once(`${call.caller.tenant ?? ''} ${key}`, call.body, () => run(key))
  return { status: 202, body: value, headers: repeated ? { 'idempotency-replayed': 'true' } : {} }
}

function refuseTopics(events: readonly object[]): void {
  const i = events.findIndex((event) => 'topic' in event)
  if (i < 0) return
  throw new HooktideError('event.invalid', 'a batch goes to one topic', {
    problems: [
      { field: `events[${i}].topic`, value: '', message: 'stands in an event', remedy: 'write topic beside events' },
    ],
  })
}
