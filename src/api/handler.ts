import type { FastifyReply, FastifyRequest } from 'fastify'
import { HooktideError } from '../core/error.ts'
import type { Problem } from '../core/result.ts'
import type { RequestChecks } from '../schema/request-check.ts'
import type { ApiOptions } from './api-options.ts'
import type { Bearer } from './bearer.ts'
import { request as requestSchema } from './json-schema.ts'
import type { ApiCall, ApiRoute } from './route.ts'
import type { ScanGate } from './scan-gate.ts'

/** Checks a request against its route's schemas, has the route handle it, sends the answer. */
export function createHandler(
  route: ApiRoute,
  checks: RequestChecks,
  options: Pick<ApiOptions, 'operations' | 'ingest'>,
  gate: ScanGate,
): (request: FastifyRequest, reply: FastifyReply) => Promise<unknown> {
  const checkQuery = checks.coerced(requestSchema(route.query ?? {}))
  const checkBody = route.body === undefined ? null : checks.body(route.body)
  return async (request, reply) => {
    const { caller, scopes } = request.bearer as Bearer
    const query = { ...(request.query as object) }
    refuse('the query has problems', checkQuery(query))
    const body = request.body ?? undefined
    if (checkBody !== null && !(body === undefined && route.bodyOptional === true))
      refuse('the body has problems', checkBody(body ?? null))
    if (route.ifMatch === true && request.headers['if-match'] === undefined) {
      throw new HooktideError('precondition.required', 'a change must say what it is a change of', {
        remedy: 'Send If-Match with the ETag of what you read, or * for whatever is there.',
      })
    }
    const call: ApiCall = {
      ops: options.operations(caller),
      caller,
      ingest: options.ingest,
      has: (scope) => scopes.includes(scope),
      params: request.params as Record<string, string>,
      query: query as ApiCall['query'],
      body: body as never,
      header(name) {
        const value = request.headers[name]
        return Array.isArray(value) ? value.join(', ') : value
      },
    }
    const answer = await (route.scans === true ? gate.pass(() => route.handle(call)) : route.handle(call))
    reply.code(answer.status ?? route.status).headers(answer.headers ?? {})
    if (answer.body === undefined) return reply.send()
    return reply.type('application/json; charset=utf-8').send(JSON.stringify(answer.body))
  }
}

function refuse(what: string, problems: readonly Problem[]): void {
  if (problems.length === 0) return
  throw new HooktideError('usage', what, { problems, remedy: '/openapi.json says what is wanted.' })
}
