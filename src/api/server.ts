import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import type { ApiScope } from '../core/api-token.ts'
import { HooktideError, messageOf } from '../core/error.ts'
import { RequestChecks } from '../schema/request-check.ts'
import type { ApiOptions } from './api-options.ts'
import { bearerOf } from './bearer.ts'
import { FailureLog } from './failure-log.ts'
import { createHandler } from './handler.ts'
import { IdempotentAnswers } from './idempotent-answers.ts'
import { openApi } from './openapi.ts'
import { problemOf } from './problem.ts'
import type { ApiRoute } from './route.ts'
import { deliveryRoutes } from './routes-deliveries.ts'
import { bodyLimit, eventRoutes } from './routes-events.ts'
import { jobRoutes } from './routes-jobs.ts'
import { steeringRoutes } from './routes-steering.ts'
import { subscriptionRoutes } from './routes-subscriptions.ts'
import { ScanGate } from './scan-gate.ts'
import { apiSchemas } from './schemas.ts'

export interface ApiServer {
  readonly port: number
  /** As fastify has them: `GET /v1/subscriptions/:id`, with the route they are made of; null: it is open to all. */
  readonly routes: readonly { readonly method: string; readonly url: string; readonly route: ApiRoute | null }[]
  /** Ends what is under way, then resolves. Idempotent. */
  close(): Promise<void>
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Null: open to all. Absent: refused. */
    scope?: ApiScope | null
    operatorsOnly?: boolean
    apiRoute?: ApiRoute
  }
}

const closingMs = 5_000

/** The HTTP API. Rejects `config.invalid` when it can't listen. */
export async function startApi(options: ApiOptions): Promise<ApiServer> {
  const { clock, observer, tokens } = options
  const failures = new FailureLog(clock, observer)
  const refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const problem = problemOf(error, request.id)
    if (problem.status >= 500) failures.note(request, error)
    if (problem.status === 401) reply.header('www-authenticate', 'Bearer realm="hooktide"')
    if (problem.status === 503) reply.header('retry-after', '1')
    return reply.code(problem.status).type('application/problem+json; charset=utf-8').send(JSON.stringify(problem))
  }
  const app = fastify({
    logger: false,
    bodyLimit: bodyLimit(options.maxEventBytes),
    // What arrives too slowly is cut off; answers may take longer (scans of the log).
    requestTimeout: 15_000,
    keepAliveTimeout: 10_000,
    http: { headersTimeout: 10_000, maxHeaderSize: 16 * 1024 },
    forceCloseConnections: 'idle',
    return503OnClosing: true,
    routerOptions: { maxParamLength: 2_100 },
    exposeHeadRoutes: false,
    onProtoPoisoning: 'error',
    onConstructorPoisoning: 'error',
    frameworkErrors: (error, request, reply) => void refuse(error, request, reply),
    genReqId: (request) => givenId(request.headers['x-request-id']) ?? randomUUID(),
  })
  const found: { method: string; url: string; route: ApiRoute | null }[] = []
  app.addHook('onRoute', ({ method, url, config }) => {
    for (const one of [method].flat()) found.push({ method: one, url, route: config?.apiRoute ?? null })
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, app.getDefaultJsonParser('error', 'error'))
  app.decorateRequest('bearer', null)

  // Before the body is read: who may not ask is told so without being listened to.
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({
      'x-request-id': request.id,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    })
    const { scope, operatorsOnly } = request.routeOptions.config
    if (request.is404 || scope === null) return
    request.bearer = bearerOf(request.headers.authorization, tokens)
    if (scope === undefined || !request.bearer.scopes.includes(scope)) {
      throw new HooktideError('forbidden', `the token lacks the scope ${scope ?? '(none would do)'}`, {
        remedy: 'Use a token that has it.',
      })
    }
    if (operatorsOnly === true && request.bearer.caller.tenant !== null) {
      throw new HooktideError('forbidden', 'this is for operators: the token is bound to a tenant', {
        remedy: 'Use a token that is not bound to a tenant.',
      })
    }
  })

  app.addHook('onResponse', async ({ method, is404, routeOptions }, { statusCode, elapsedTime }) => {
    // Of the table of routes, never of the path: that is the caller's.
    const route = is404 ? 'unknown' : `${method} ${routeOptions.url ?? ''}`
    observer.count('api_requests', 1, { route, status: `${Math.floor(statusCode / 100)}xx` })
    observer.time('api_request', elapsedTime, { route })
  })
  app.setErrorHandler(refuse)
  app.setNotFoundHandler((request, reply) =>
    refuse(
      new HooktideError('not-found', 'there is nothing here', { remedy: '/openapi.json lists what there is.' }),
      request,
      reply,
    ),
  )

  const routes = [
    ...subscriptionRoutes,
    ...eventRoutes(new IdempotentAnswers(clock), options.maxLargeBytes),
    ...deliveryRoutes,
    ...jobRoutes,
    ...steeringRoutes,
  ]
  const gate = new ScanGate()
  const checks = new RequestChecks(apiSchemas)
  for (const route of routes) {
    const { method, path, scope, operatorsOnly = false, maxBodyBytes } = route
    app.route({
      method,
      url: path.replaceAll(/\{(\w+)\}/g, ':$1'),
      config: { scope, operatorsOnly, apiRoute: route },
      ...(maxBodyBytes === undefined ? {} : { bodyLimit: maxBodyBytes }),
      handler: createHandler(route, checks, options, gate),
    })
  }
  const document = JSON.stringify(openApi(routes, options.version))
  app.get('/openapi.json', { config: { scope: null } }, (_, reply) => reply.type('application/json').send(document))

  try {
    await app.listen({ host: options.host, port: options.port })
  } catch (cause) {
    throw new HooktideError(
      'config.invalid',
      `the API can not listen on ${options.host}:${options.port}: ${messageOf(cause)}`,
      {
        cause,
        remedy: 'Choose another api.listen, or end what listens there.',
      },
    )
  }
  let closing: Promise<void> | null = null
  return {
    port: (app.server.address() as AddressInfo).port,
    routes: found,
    close() {
      closing ??= (async () => {
        const cancel = clock.after(closingMs, () => app.server.closeAllConnections())
        await app.close()
        cancel()
      })()
      return closing
    },
  }
}

function givenId(header: string | string[] | undefined): string | null {
  return typeof header === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(header) ? header : null
}
