import { type ErrorCode, errorCodes, HooktideError, messageOf } from '../core/error.ts'
import type { Problem } from '../core/result.ts'

export interface ApiRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
  readonly timeoutMs: number
}

export interface ApiResponse {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** One HTTP request; rejects when there is no answer within the time. */
export type CallApi = (request: ApiRequest) => Promise<ApiResponse>

export interface ApiAccess {
  /** Without a slash at the end. */
  readonly base: string
  readonly token: string | null
  readonly call: CallApi
}

interface Ask {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Scans of the log take their time. */
const timeoutMs = 60_000

/** Requests to the API of a service; its problem details become the errors that they were there. */
export class ApiClient {
  readonly #access: ApiAccess

  constructor(access: ApiAccess) {
    this.#access = access
  }

  async ask<T>(method: string, path: string, ask: Ask = {}): Promise<{ readonly value: T; readonly etag: string }> {
    const { base, token, call } = this.#access
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries(ask.query ?? {})) if (value !== undefined) query.set(name, String(value))
    const url = `${base}/v1${path}${query.size === 0 ? '' : `?${query}`}`
    const body = ask.body === undefined ? null : JSON.stringify(ask.body)
    const headers: Record<string, string> = { accept: 'application/json, application/problem+json', ...ask.headers }
    if (token !== null) headers.authorization = `Bearer ${token}`
    if (body !== null) headers['content-type'] = 'application/json'
    let response: ApiResponse
    try {
      response = await call({ method, url, headers, body, timeoutMs })
    } catch (cause) {
      throw new HooktideError('api.unavailable', `${base} gave no answer: ${messageOf(cause)}`, {
        cause,
        remedy: 'Check --api-url, and that a service serves its API there (api.listen).',
      })
    }
    if (response.status >= 400) throw errorOf(response, base)
    const value = response.body === '' ? undefined : parsed(response.body, base)
    return { value: value as T, etag: (response.headers.etag ?? '').replaceAll('"', '') }
  }

  async get<T>(path: string, query: Ask['query'] = {}): Promise<T> {
    return (await this.ask<T>('GET', path, { query })).value
  }

  async post<T>(path: string, body: unknown = {}): Promise<T> {
    return (await this.ask<T>('POST', path, { body })).value
  }
}

function errorOf({ status, body }: ApiResponse, base: string): HooktideError {
  const problem = parsed(body, base) as {
    code?: unknown
    detail?: unknown
    remedy?: unknown
    details?: unknown
    errors?: unknown
  } | null
  const code = errorCodes.find((known) => known === problem?.code) ?? codeOfStatus(status)
  const detail = typeof problem?.detail === 'string' ? problem.detail : `the API answered ${status}`
  const remedy = typeof problem?.remedy === 'string' ? { remedy: problem.remedy } : {}
  const details = Array.isArray(problem?.details) ? { details: problem.details.map(String) } : {}
  const problems = Array.isArray(problem?.errors) ? { problems: problem.errors as Problem[] } : {}
  return new HooktideError(code, detail, { ...remedy, ...details, ...problems })
}

function codeOfStatus(status: number): ErrorCode {
  if (status === 401) return 'unauthorized'
  if (status === 403) return 'forbidden'
  if (status === 404) return 'not-found'
  return status < 500 ? 'usage' : 'api.unavailable'
}

function parsed(text: string, base: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new HooktideError('api.unavailable', `${base} did not answer as the API of Hooktide does`, {
      cause,
      remedy: 'Check --api-url: something else may answer there.',
    })
  }
}
