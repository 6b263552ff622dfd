import { classify } from '../../src/core/classify.ts'
import { checkCustomHeaders } from '../../src/core/custom-headers.ts'
import { type GuardPolicy, guardPolicy } from '../../src/core/guard-policy.ts'
import { checkUrl } from '../../src/core/url-rules.ts'
import { type Answer, Resolver } from '../../src/http/resolver.ts'
import { HttpSender } from '../../src/http/sender.ts'
import type { Post } from '../../src/ports.ts'
import { realClock } from '../support/clock.ts'
import { type Line, mapConcurrently } from './report.ts'
import { stubNetwork } from './stub-network.ts'

interface Answers {
  readonly A?: readonly string[]
  readonly AAAA?: readonly string[]
  readonly CNAME?: string
  readonly Agen?: number
  readonly error?: string
  readonly sequence?: readonly Answers[]
}

export interface SsrfCase {
  readonly id: string
  readonly url: string
  readonly verdict: 'block' | 'allow'
  readonly level: string
  readonly when: 'create' | 'connect' | 'redirect'
  readonly headers?: Record<string, string>
  readonly dns?: Record<string, Answers>
  readonly config?: Record<string, unknown>
  readonly neverConnectTo?: readonly string[]
  readonly response?: { status: number; headers?: Record<string, string> }
}

/**
 * The check a subscription is created with, then the real sender with the case's answers and a network that records
 * dials. A post for every answer of a sequence, each on a new connection, so that a changed answer has its chance.
 */
export async function runSsrf(cases: readonly SsrfCase[], width = 16): Promise<Line[]> {
  return mapConcurrently(cases, width, runCase)
}

async function runCase(item: SsrfCase): Promise<Line> {
  const base = { id: item.id, level: item.level, expected: item.verdict }
  const policy = policyOf(item.config ?? {})
  if (!policy.ok) return { ...base, got: `configuration not understood: ${policy.reason}`, ok: false }
  const refusal = refusedAtCreate(item, policy.value)
  if (refusal !== null) {
    const late = item.when === 'redirect' ? '; the first hop should have been allowed' : ''
    return { ...base, got: 'block', ok: item.verdict === 'block' && late === '', note: `at create: ${refusal}${late}` }
  }
  const network = stubNetwork(item.response ?? { status: 200 })
  const lookups = new Map<string, number>()
  const sender = new HttpSender({
    clock: realClock,
    policy: policy.value,
    connectTimeoutMs: 1000,
    totalTimeoutMs: 2000,
    network,
    resolver: new Resolver({ clock: realClock, timeoutMs: 300, query: fakeQuery(item.dns ?? {}, lookups) }),
  })
  const rounds = Math.max(1, ...Object.values(item.dns ?? {}).map((answers) => answers.sequence?.length ?? 1))
  const notes: string[] = []
  let refusedRounds = 0
  for (let i = 0; i < rounds; i++) {
    const before = network.dials.length
    const reply = await sender.post(post(item))
    if (network.dials.length === before) refusedRounds++
    if (item.when === 'redirect') notes.push(classify(reply, realClock.now()).t)
    if (reply.t === 'failure') notes.push(`${reply.class}: ${reply.detail}`)
  }
  await sender.close()
  const dialled = network.dials.map((dial) => dial.address)
  const forbidden = dialled.filter((address) => item.neverConnectTo?.includes(address))
  if (forbidden.length > 0) notes.push(`dialled ${forbidden.join(', ')}`)
  // A redirect is blocked when the first hop was all that was dialled.
  const blocked = item.when === 'redirect' ? dialled.length === 1 : refusedRounds > 0
  const got = blocked && forbidden.length === 0 ? 'block' : 'allow'
  return {
    ...base,
    got,
    ok: got === item.verdict,
    note: [...notes, `dialled ${dialled.join(' ') || 'nothing'}`].join('; '),
  }
}

function refusedAtCreate(item: SsrfCase, policy: GuardPolicy): string | null {
  const url = checkUrl(item.url, policy)
  if (!url.ok) return url.reason
  const headers = item.headers === undefined ? null : checkCustomHeaders(item.headers)
  return headers === null || headers.ok ? null : headers.reason
}

/** The names a case file has for the operator's switches. */
function policyOf(config: Record<string, unknown>) {
  const list = (...names: string[]) =>
    names.flatMap((name) => (Array.isArray(config[name]) ? (config[name] as string[]) : []))
  const flag = (...names: string[]) => names.some((name) => Boolean(config[name]))
  return guardPolicy({
    allowHttp: config.allowHttp !== false && config.httpsOnly !== true && config.requireHttps !== true,
    allowPrivate: list('allowCidrs', 'allowHosts', 'allowNames', 'allowDomains', 'allowPrivate'),
    deny: list('denyCidrs', 'deny'),
    allowMetadata: flag('allowMetadata'),
    allowNat64: flag('allowNat64', 'nat64', 'allowNAT64'),
  })
}

/** One entry of a sequence per lookup, the last one for ever; both families of a lookup see the same entry. */
function fakeQuery(dns: Record<string, Answers>, lookups: Map<string, number>) {
  return async (name: string, family: 4 | 6): Promise<readonly Answer[]> => {
    const answers = dns[name] ?? dns[`${name}.`]
    if (answers === undefined) throw Object.assign(new Error('not found'), { code: 'ENOTFOUND' })
    const asked = lookups.get(name) ?? 0
    if (family === 6) lookups.set(name, asked + 1)
    const { sequence } = answers
    const now = sequence === undefined ? answers : (sequence[Math.min(asked, sequence.length - 1)] as Answers)
    if (now.error === 'hang') return new Promise(() => {})
    if (now.error !== undefined) throw Object.assign(new Error(now.error), { code: now.error })
    const generated =
      family === 4 ? Array.from({ length: now.Agen ?? 0 }, (_, i) => `93.184.${(i >> 8) & 255}.${i & 255}`) : []
    const listed = (family === 4 ? now.A : now.AAAA) ?? []
    return [...generated, ...listed].map((address) => ({ address, ttlS: 0 }))
  }
}

function post(item: SsrfCase): Post {
  return {
    url: item.url,
    deliveryId: 'msg_conformance',
    attempt: 1,
    eventType: 'case.run',
    contentType: 'application/json',
    traceparent: null,
    body: Buffer.alloc(0),
    headers: item.headers,
    keys: [],
    timeoutMs: undefined,
  }
}
