import { type Problem, problemText } from './result.ts'

/**
 * Every error Hooktide throws on purpose. Match on `code`, never on text. A failed delivery is not an error: it is an
 * `Outcome`. `retry` says whether the same call, made again on a fresh client, can succeed without anyone's help.
 */
export const errorCodes = [
  'config.invalid',
  'usage',
  'broker.unavailable',
  'broker.timeout',
  'broker.unauthenticated',
  'broker.unauthorized',
  'broker.incompatible',
  'topic.missing',
  'topic.drift',
  'record.too-large',
  'producer.fenced',
  'producer.failed',
  'producer.closed',
  'consumer.failed',
  'subscription.invalid',
  'subscription.unknown',
  'subscription.unreadable',
  'secret.unavailable',
  'state.unavailable',
  'not-found',
  'conflict',
  'unauthorized',
  'forbidden',
  'precondition.failed',
  'precondition.required',
  'busy',
  'check.failed',
  'internal',
  'event.invalid',
  'idempotency.conflict',
  'api.unavailable',
] as const

export type ErrorCode = (typeof errorCodes)[number]

const retryable: ReadonlySet<ErrorCode> = new Set([
  'broker.unavailable',
  'broker.timeout',
  'producer.failed',
  'consumer.failed',
  'state.unavailable',
  'busy',
  'api.unavailable',
])

export class HooktideError extends Error {
  override readonly name = 'HooktideError'
  readonly code: ErrorCode
  /** What a person should do about it: one sentence. */
  readonly remedy: string | undefined
  /** Further lines of a report, e.g. every problem of a configuration. */
  readonly details: readonly string[]
  /** Where the details are problems of something a person wrote: these, field by field. */
  readonly problems: readonly Problem[]

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      cause?: unknown
      remedy?: string
      details?: readonly string[]
      problems?: readonly Problem[]
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.remedy = options.remedy
    this.problems = options.problems ?? []
    this.details = options.details ?? this.problems.map(problemText)
  }

  get retry(): boolean {
    return retryable.has(this.code)
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export function codeOf(error: unknown): ErrorCode {
  return error instanceof HooktideError ? error.code : 'internal'
}
