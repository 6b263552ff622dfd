import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { addressRefusal } from '../src/core/address-guard.ts'
import { strictPolicy } from '../src/core/guard-policy.ts'
import { parseSecret } from '../src/core/signature.ts'
import { checkUrl } from '../src/core/url-rules.ts'
import { buildHeaders } from '../src/http/headers.ts'
import type { Post } from '../src/ports.ts'
import { monoMs } from './mono.ts'
import { Rows } from './result.ts'
import type { Scenario } from './scenario.ts'

const cases = join(import.meta.dirname, '..', 'test', 'cases', 'ssrf-urls.json')
const batches = 40

/** What every new connection costs in the guard, and what judging a URL costs when it is first seen. */
export const guard: Scenario = {
  name: 'guard',
  bare: true,
  about: 'the address guard: one literal, and one whole URL, over those of the test cases and public ones',
  async run(_, settings) {
    const urls = (JSON.parse(readFileSync(cases, 'utf8')) as { cases: { url?: string }[] }).cases.flatMap(({ url }) =>
      typeof url === 'string' ? [url] : [],
    )
    const literals = [...addresses(urls), '93.184.215.14', '1.1.1.1', '2606:4700::1', '2a00:1450:4001::200e']
    const rows = new Rows()
    for (let round = 0; round < settings.rounds; round++) {
      rows.add(`${literals.length} literals`, {
        'µs per check': usPer(literals, (each) => addressRefusal(each, strictPolicy)),
      })
      rows.add(`${urls.length} URLs`, { 'µs per check': usPer(urls, (each) => checkUrl(each, strictPolicy)) })
    }
    return { rows: rows.all(), targets: [{ row: `${literals.length} literals`, figure: 'µs per check', atMost: 5 }] }
  },
}

/** What an attempt costs before its first byte: signatures and headers, beside the bare HMAC. */
export const sign: Scenario = {
  name: 'sign',
  bare: true,
  about: 'signing a body of 1 KiB and building all headers, by what the subscription asks for',
  async run(_, settings) {
    const body = Buffer.alloc(1024, 'x')
    const key = parsed(`whsec_${Buffer.alloc(32, 1).toString('base64')}`)
    const other = parsed(`whsec_${Buffer.alloc(32, 2).toString('base64')}`)
    const plain: Post = {
      url: 'https://example.com/hook',
      deliveryId: 'msg_01HF3Z8K9V6Q2W4X7Y5T1R0P8N',
      attempt: 1,
      eventType: 'order.created',
      contentType: 'application/json',
      traceparent: null,
      body,
      headers: undefined,
      keys: [key],
      timeoutMs: undefined,
    }
    const access = {
      ...{ authorization: `Bearer ${'t'.repeat(800)}`, client: null, legacyKey: null },
      ...{ token: {}, confidential: [] },
    }
    const headers = { 'x-team': 'billing', 'x-env': 'prod', 'x-source': 'hooktide' }
    const posts: Record<string, Post> = {
      'one secret': plain,
      'two secrets (rotation)': { ...plain, keys: [key, other] },
      'token, own headers, legacy signature': {
        ...plain,
        ...{ access, headers, legacySignature: { header: 'X-Hub-Signature-256' } },
      },
    }
    const rows = new Rows()
    const items = Array.from({ length: 500 }, (_, i) => i)
    for (let round = 0; round < settings.rounds; round++) {
      for (const [name, post] of Object.entries(posts))
        rows.add(name, { 'µs per attempt': usPer(items, (i) => buildHeaders(post, 1_700_000_000_000 + i, 'Hooktide')) })
      rows.add('bare SHA-256, for comparison', {
        'µs per attempt': usPer(items, () => createHash('sha256').update(body).digest('base64')),
      })
    }
    return { rows: rows.all(), targets: [{ row: 'one secret', figure: 'µs per attempt', atMost: 15 }] }
  },
}

function parsed(secret: string) {
  const key = parseSecret(secret)
  if (!key.ok) throw new Error(key.reason)
  return key.value
}

/** Addresses that stand in URLs as they are dialled. */
function addresses(urls: readonly string[]): string[] {
  const hosts = urls.flatMap((url) => URL.parse(url)?.hostname.replace(/^\[(.*)\]$/, '$1') ?? [])
  return [...new Set(hosts.filter((host) => /^[\d.]+$|:/.test(host)))]
}

/** The median of many batches: a machine that does something else meanwhile must not be what is measured. */
function usPer<T>(items: readonly T[], work: (item: T) => unknown): number {
  const times: number[] = []
  for (let batch = 0; batch < batches; batch++) {
    const startMs = monoMs()
    let n = 0
    for (; n < 5000; n += items.length) for (const item of items) work(item)
    times.push(((monoMs() - startMs) * 1000) / n)
  }
  // The first ones run uncompiled code.
  return times.slice(10).sort((a, b) => a - b)[Math.floor((batches - 10) / 2)] as number
}
