import type { ApiServer } from '../../src/api/server.ts'
import { startApiRole } from '../../src/app/api.ts'
import { loadConfig } from '../../src/config.ts'
import { type ApiScope, hashToken } from '../../src/core/api-token.ts'
import { clusterOf, ownWorld } from '../cli/support.ts'
import { realClock } from '../support/clock.ts'
import { notingObserver } from '../support/kafka.ts'

/** Tokens of every kind, by what they may do. */
export const tokens = {
  operator: 'operator-token-of-the-tests',
  acme: 'acme-token-of-the-tests',
  globex: 'globex-token-of-the-tests',
  reader: 'reader-token-of-the-tests',
  writer: 'writer-token-of-the-tests',
  replayer: 'replayer-token-of-the-tests',
  keeper: 'keeper-token-of-the-tests',
} as const

const all: readonly ApiScope[] = ['read', 'write', 'replay', 'secrets']
const entries = [
  { name: 'operator', scopes: all },
  { name: 'acme', scopes: all, tenant: 'acme' },
  { name: 'globex', scopes: all, tenant: 'globex' },
  { name: 'reader', scopes: ['read'] },
  { name: 'writer', scopes: ['write'] },
  { name: 'replayer', scopes: ['replay'] },
  { name: 'keeper', scopes: ['secrets'] },
].map((entry) => ({ ...entry, hash: hashToken(tokens[entry.name as keyof typeof tokens]) }))

export interface Answer {
  readonly status: number
  readonly type: string
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into.
  readonly body: any
  readonly text: string
}

export interface ApiWorld {
  readonly env: Record<string, string>
  readonly base: string
  readonly routes: ApiServer['routes']
  readonly logged: ReturnType<typeof notingObserver>
  ask(method: string, path: string, options?: AskOptions): Promise<Answer>
  close(): Promise<void>
}

export interface AskOptions {
  readonly token?: string | null
  readonly body?: unknown
  readonly raw?: string | Buffer
  readonly headers?: Record<string, string>
}

/** An API of its own on the shared broker. Close it. */
export async function apiWorld(more: Record<string, string> = {}): Promise<ApiWorld> {
  const env = await ownWorld({
    HOOKTIDE_API_LISTEN: '127.0.0.1:0',
    HOOKTIDE_API_TOKENS: JSON.stringify(entries),
    HOOKTIDE_HTTP_ALLOW_HTTP: 'true',
    HOOKTIDE_HTTP_ALLOW_PRIVATE: '127.0.0.0/8',
    HOOKTIDE_SECRETS_MASTER_KEY_REF: 'env:MASTER',
    MASTER: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    SIGNING: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    ...more,
  })
  const { config } = loadConfig({ env })
  const cluster = clusterOf(env)
  const logged = notingObserver()
  const options = {
    ...{ config, env, clock: realClock, observer: logged },
    roles: { router: false, deliverer: false },
    onFatal: () => undefined,
  }
  const api = await startApiRole(options as never, cluster.kafka, cluster.admin)
  const base = `http://127.0.0.1:${api.port}`
  return {
    env,
    base,
    routes: api.routes,
    logged,
    async ask(method, path, { token = tokens.operator, body, raw, headers = {} } = {}) {
      const sent: Record<string, string> = { ...headers }
      if (token !== null) sent.authorization = `Bearer ${token}`
      if (body !== undefined) sent['content-type'] ??= 'application/json'
      const response = await fetch(`${base}${path}`, {
        method,
        headers: sent,
        signal: AbortSignal.timeout(30_000),
        ...(body !== undefined ? { body: JSON.stringify(body) } : raw === undefined ? {} : { body: raw }),
      })
      const text = await response.text()
      const type = response.headers.get('content-type') ?? ''
      const parsed = type.includes('json') ? JSON.parse(text) : null
      return { status: response.status, type, headers: response.headers, body: parsed, text }
    },
    async close() {
      await api.close()
      await cluster.close()
    },
  }
}
