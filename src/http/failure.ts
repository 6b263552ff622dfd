import type { FailureClass } from '../core/outcome.ts'

/** Why an attempt got no status, on its way through undici, which carries errors only. Never leaves this folder. */
export class Failure extends Error {
  readonly class: FailureClass
  /** Our machine's fault, not the endpoint's: the attempt does not count. */
  readonly own: boolean

  constructor(failureClass: FailureClass, detail: string, own = false) {
    super(detail)
    this.class = failureClass
    this.own = own
  }
}

/** No descriptors, memory, buffers or local ports left. */
const ownFaults: ReadonlySet<string> = new Set([
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'ENOBUFS',
  'EADDRNOTAVAIL',
  'ERR_OUT_OF_MEMORY',
])
const resets: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'ENOTCONN', 'ENETRESET'])
const routes: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ENETDOWN',
  'EACCES',
  'EPERM',
])

/** Translates whatever `node:net`, `node:tls` or undici raised after the connection stood. Unknown things are `local`. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error
  const code = codeOf(error)
  const message = describe(error, code)
  if (ownFaults.has(code)) return new Failure('local', message, true)
  if (resets.has(code)) return new Failure('reset', message)
  if (routes.has(code)) return new Failure('connect', message)
  if (code === 'ETIMEDOUT') return new Failure('timeout', message)
  if (code === 'UND_ERR_SOCKET') return socketFailure(error as Error)
  if (isParserError(error) || protocolErrors.has(code)) return new Failure('protocol', message)
  if (isTls(code)) return new Failure('tls', message)
  return new Failure('local', message)
}

/** The same before it stood: what fails while connecting or shaking hands is of that phase, except our own fault. */
export function connectFailureOf(error: unknown, phase: 'dns' | 'connect' | 'tls'): Failure {
  if (error instanceof Failure) return error
  const code = codeOf(error)
  const message = describe(error, code)
  if (ownFaults.has(code)) return new Failure('local', message, true)
  return code === '' ? new Failure('local', message) : new Failure(phase, message)
}

const protocolErrors: ReadonlySet<string> = new Set([
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_RES_EXCEEDED_MAX_SIZE',
  // undici asserts on status codes below 100.
  'ERR_ASSERTION',
])

/** Its code is `HPE_…`, or nothing where the parser knows none. */
function isParserError(error: unknown): boolean {
  return error instanceof Error && error.name === 'HTTPParserError'
}

/** undici has one code for a closed socket and for an answer out of turn. */
function socketFailure(error: Error): Failure {
  return /^bad (response|upgrade)/.test(error.message)
    ? new Failure('protocol', `${error.message}: an answer out of turn`)
    : new Failure('reset', 'the endpoint closed the connection without an answer')
}

function isTls(code: string): boolean {
  return code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_') || code === 'EPROTO'
}

function codeOf(error: unknown): string {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined
  return typeof code === 'string' ? code : ''
}

function describe(error: unknown, code: string): string {
  // OpenSSL's message is an address, a source path and a line; its reason is a phrase. Node appends advice after `;`.
  const reason = (error as { reason?: unknown } | null)?.reason
  const message = typeof reason === 'string' ? reason : error instanceof Error ? error.message : String(error)
  const text = message.replace(/;.*/s, '').replace(/\s+/g, ' ').trim().slice(0, 200)
  return code === '' || text.includes(code) ? text : `${code}: ${text}`
}
