import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HooktideError, messageOf } from '../core/error.ts'
import type { Clock, Observer } from '../ports.ts'
import { redact } from './redact.ts'

export interface Health {
  readonly ok: boolean
  /** Why not, one line each; may also hold remarks when all is well. */
  readonly reasons: readonly string[]
}

export interface ObserveServerOptions {
  /** Default 127.0.0.1: metrics are nobody else's business unless configured. */
  readonly host?: string
  /** 0: any free one. */
  readonly port: number
  readonly metrics: () => Promise<{ readonly contentType: string; readonly body: string }>
  /** Not ok: consumption has stopped although work is there; the orchestrator should restart the process. */
  readonly health: () => Health | Promise<Health>
  /** Not ok: not yet, or no longer, taking part. */
  readonly ready: () => Health | Promise<Health>
  readonly clock: Clock
  readonly observer: Observer
}

export interface ObserveServer {
  readonly port: number
  /** Ends answers under way, then resolves. Idempotent. */
  close(): Promise<void>
}

interface Page {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

/** A check that does not answer is a failed check: probes give up after seconds, and an unanswered probe says nothing. */
const checkMs = 3_000

/** `/metrics`, `/healthz`, `/readyz`. Rejects `config.invalid` when it can't listen. */
export async function startObserveServer(options: ObserveServerOptions): Promise<ObserveServer> {
  const { clock, observer } = options
  const pages: Readonly<Record<string, () => Promise<Page>>> = {
    '/metrics': async () => ({ status: 200, ...(await options.metrics()) }),
    '/healthz': () => check(options.health, clock),
    '/readyz': () => check(options.ready, clock),
  }

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const path = (request.url ?? '').split('?', 1)[0] ?? ''
    const page = Object.hasOwn(pages, path) ? pages[path] : undefined
    if (page === undefined)
      return send(request, response, text(404, 'not found: /metrics, /healthz and /readyz are here\n'))
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      return send(request, response, text(405, 'only GET and HEAD\n'))
    }
    send(request, response, await page())
  }

  const server = createServer(
    { requestTimeout: 10_000, headersTimeout: 5_000, keepAliveTimeout: 5_000 },
    (request, response) => {
      answer(request, response).catch((error: unknown) => {
        observer.log('error', 'observe.failed', { path: request.url ?? '', error: messageOf(error) })
        if (response.headersSent) response.destroy()
        else send(request, response, text(500, 'failed; the log says why\n'))
      })
    },
  )
  const { host = '127.0.0.1', port } = options
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => {
      reject(
        new HooktideError('config.invalid', `Can't serve metrics on ${host}:${port}: ${error.message}`, {
          cause: error,
          remedy: 'Choose another address or port for metrics, or end what listens there.',
        }),
      )
    })
    server.listen(port, host, resolve)
  })
  server.on('error', (error) => observer.log('error', 'observe.failed', { error: error.message }))

  let closing: Promise<void> | null = null
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      closing ??= new Promise((resolve) => {
        // Idle keep-alive connections end at once; answers under way get a moment, then the wire is cut.
        const cancel = clock.after(2_000, () => server.closeAllConnections())
        server.close(() => {
          cancel()
          resolve()
        })
      })
      return closing
    },
  }
}

async function check(ask: () => Health | Promise<Health>, clock: Clock): Promise<Page> {
  const health = await new Promise<Health>((resolve) => {
    const cancel = clock.after(checkMs, () => resolve({ ok: false, reasons: [`no answer within ${checkMs} ms`] }))
    const done = (health: Health) => {
      cancel()
      resolve(health)
    }
    Promise.resolve()
      .then(ask)
      .then(done, (error: unknown) => done({ ok: false, reasons: [messageOf(error)] }))
  })
  const body = `${JSON.stringify({ ok: health.ok, reasons: health.reasons.map(redact) })}\n`
  return { status: health.ok ? 200 : 503, contentType: 'application/json', body }
}

function text(status: number, body: string): Page {
  return { status, contentType: 'text/plain; charset=utf-8', body }
}

function send(request: IncomingMessage, response: ServerResponse, { status, contentType, body }: Page): void {
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}
