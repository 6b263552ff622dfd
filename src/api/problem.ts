import { type ErrorCode, HooktideError } from '../core/error.ts'
import type { Problem } from '../core/result.ts'

/** RFC 9457. */
export interface ProblemDetails {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly instance: string
  readonly code: string
  readonly remedy: string | null
  readonly details: readonly string[]
  readonly errors: readonly Problem[]
}

interface Kind {
  readonly status: number
  readonly title: string
}

/** What each error is to a caller of the API. What is not here is ours: 500, and nothing of it is told. */
const kinds: Partial<Record<ErrorCode, Kind>> = {
  usage: { status: 400, title: 'The request can not be understood' },
  unauthorized: { status: 401, title: 'No valid token' },
  forbidden: { status: 403, title: 'Not allowed' },
  'not-found': { status: 404, title: 'Not found' },
  'subscription.unknown': { status: 404, title: 'Not found' },
  conflict: { status: 409, title: 'It does not fit what is there' },
  'subscription.unreadable': { status: 409, title: 'It does not fit what is there' },
  'check.failed': { status: 409, title: 'It does not fit what is there' },
  'precondition.failed': { status: 412, title: 'It was changed since' },
  'record.too-large': { status: 413, title: 'Too large' },
  'subscription.invalid': { status: 422, title: 'The subscription has problems' },
  'event.invalid': { status: 422, title: 'The event can not be taken' },
  'idempotency.conflict': { status: 422, title: 'The key was used for something else' },
  'precondition.required': { status: 428, title: 'If-Match is missing' },
  busy: { status: 503, title: 'Too much at once' },
  'broker.unavailable': { status: 503, title: 'Kafka gives no answer' },
  'broker.timeout': { status: 503, title: 'Kafka gives no answer' },
  'producer.failed': { status: 503, title: 'Kafka has not acknowledged' },
  'consumer.failed': { status: 503, title: 'Kafka gives no answer' },
  'state.unavailable': { status: 503, title: 'No delivery state' },
  'secret.unavailable': { status: 503, title: 'No secret can be made' },
  'topic.missing': { status: 503, title: 'A topic is missing' },
  'broker.unauthorized': { status: 503, title: 'Kafka refuses the service' },
  'broker.unauthenticated': { status: 503, title: 'Kafka refuses the service' },
}

const ours: Kind = { status: 500, title: 'The service failed' }

export function problemOf(error: unknown, requestId: string): ProblemDetails {
  const known = error instanceof HooktideError ? kinds[error.code] : undefined
  const { status, title } = known ?? statusOf(error) ?? ours
  const isOurs = known === undefined && status >= 500
  const hooktide = error instanceof HooktideError && known !== undefined ? error : null
  const code = hooktide?.code ?? (isOurs ? 'internal' : 'usage')
  const detail = isOurs ? 'The log of the service says why, under the request id.' : messageOf(error, hooktide)
  return {
    type: `https://hooktide.dev/problems/${hooktide === null && !isOurs ? slug(title) : code.replaceAll('.', '-')}`,
    title,
    status,
    detail,
    instance: `urn:hooktide:request:${requestId}`,
    code,
    remedy: hooktide?.remedy ?? null,
    details: hooktide?.details ?? [],
    errors: hooktide?.problems ?? [],
  }
}

/** What the HTTP layer refuses by itself. */
const refusals: Readonly<Record<number, string>> = {
  400: 'The request can not be understood',
  408: 'The request came too slowly',
  413: 'Too large',
  414: 'The URL is too long',
  415: 'The content type is not read here',
  431: 'The headers are too large',
  503: 'The service is stopping',
}

function statusOf(error: unknown): Kind | null {
  const { statusCode } = (error ?? {}) as { statusCode?: unknown }
  const title = typeof statusCode === 'number' ? refusals[statusCode] : undefined
  return title === undefined ? null : { status: statusCode as number, title }
}

/** A parser's words may quote what was sent: they are cut. */
function messageOf(error: unknown, hooktide: HooktideError | null): string {
  if (hooktide !== null) return hooktide.message
  return error instanceof Error ? error.message.slice(0, 200) : 'it was refused'
}

function slug(title: string): string {
  return title.toLowerCase().replaceAll(/[^a-z]+/g, '-')
}
