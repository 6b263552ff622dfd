import { promises as dns } from 'node:dns'
import { readFileSync } from 'node:fs'
import { parseIp } from '../core/ip.ts'
import type { Clock } from '../ports.ts'
import { Failure } from './failure.ts'

export interface Answer {
  readonly address: string
  readonly ttlS: number
}

/** Asks for one family; rejects with node's DNS errors (`ENOTFOUND`, `ENODATA`, …). Need not end: the resolver has its own time-out. */
export type Query = (name: string, family: 4 | 6) => Promise<readonly Answer[]>

export interface ResolverOptions {
  readonly clock: Clock
  readonly query: Query
  /** Names answered without a lookup (hosts file, localhost): lower case → addresses. */
  readonly hosts?: ReadonlyMap<string, readonly string[]>
  readonly timeoutMs?: number
  /** Answers are kept for their TTL, but no longer than this. */
  readonly maxTtlMs?: number
  readonly maxEntries?: number
}

type Done = (error: Failure | null, addresses: readonly string[]) => void

interface Entry {
  readonly addresses: readonly string[]
  readonly untilMs: number
}

/** How long the second family is waited for once the first has answered (RFC 8305: resolution delay). */
const secondFamilyMs = 150

/**
 * Name → addresses, IPv4 first. Not `getaddrinfo`: that holds one of four threads per hanging name and would stall
 * every other subscription. Equal questions share one lookup; nothing is answered from the cache beyond its TTL.
 */
export class Resolver {
  readonly #options: ResolverOptions
  readonly #cache = new Map<string, Entry>()
  readonly #asking = new Map<string, Done[]>()
  readonly #timeoutMs: number
  readonly #maxTtlMs: number
  readonly #maxEntries: number

  constructor(options: ResolverOptions) {
    this.#options = options
    this.#timeoutMs = options.timeoutMs ?? 2000
    this.#maxTtlMs = options.maxTtlMs ?? 30_000
    this.#maxEntries = options.maxEntries ?? 10_000
  }

  /** `done` may be called before this returns (cache). Addresses are untested. */
  lookup(name: string, done: Done): void {
    const known = this.known(name)
    const waiting = this.#asking.get(name)
    if (known !== undefined) done(null, known)
    else if (waiting !== undefined) waiting.push(done)
    else {
      this.#asking.set(name, [done])
      this.#ask(name)
    }
  }

  /** What holds for a name now, without a lookup; undefined: nobody has asked of late. */
  known(name: string): readonly string[] | undefined {
    return this.#options.hosts?.get(name) ?? this.#cached(name)
  }

  #cached(name: string): readonly string[] | undefined {
    const entry = this.#cache.get(name)
    return entry !== undefined && entry.untilMs > this.#options.clock.mono() ? entry.addresses : undefined
  }

  #ask(name: string): void {
    const { clock } = this.#options
    const answers: Partial<Record<4 | 6, readonly Answer[]>> = {}
    let open = 2
    let firstError: Failure | null = null
    let stop = clock.after(this.#timeoutMs, () => finish())
    let ended = false
    const finish = () => {
      if (ended) return
      ended = true
      stop()
      const all = [...(answers[4] ?? []), ...(answers[6] ?? [])]
      if (all.length > 0) return this.#answer(name, all)
      const late = new Failure('dns', `no answer for ${name} within ${this.#timeoutMs} ms`)
      this.#tell(name, open > 0 ? late : (firstError ?? new Failure('dns', `${name} has no addresses`)), [])
    }
    const take = (family: 4 | 6, got: readonly Answer[]) => {
      open--
      answers[family] = got
      if (open === 0) return finish()
      if (ended || got.length === 0) return
      stop()
      stop = clock.after(secondFamilyMs, finish)
    }
    for (const family of [4, 6] as const) {
      this.#query(name, family).then(
        (got) => take(family, got),
        (error) => {
          firstError ??= dnsFailure(name, error)
          take(family, [])
        },
      )
    }
  }

  async #query(name: string, family: 4 | 6): Promise<readonly Answer[]> {
    return this.#options.query(name, family)
  }

  #answer(name: string, answers: readonly Answer[]): void {
    const ttlMs = Math.min(this.#maxTtlMs, ...answers.map((answer) => Math.max(0, answer.ttlS) * 1000))
    const addresses = answers.map((answer) => answer.address)
    this.#cache.delete(name)
    if (ttlMs > 0) {
      if (this.#cache.size >= this.#maxEntries) this.#cache.delete(this.#cache.keys().next().value as string)
      this.#cache.set(name, { addresses, untilMs: this.#options.clock.mono() + ttlMs })
    }
    this.#tell(name, null, addresses)
  }

  #tell(name: string, error: Failure | null, addresses: readonly string[]): void {
    const waiting = this.#asking.get(name) ?? []
    this.#asking.delete(name)
    for (const done of waiting) done(error, addresses)
  }
}

/** The system's name servers over c-ares: UDP, no threads, no search domains. */
export function systemQuery(servers?: readonly string[]): Query {
  const resolver = new dns.Resolver({ timeout: 800, tries: 3 })
  if (servers !== undefined) resolver.setServers(servers)
  return async (name, family) => {
    const answers = await (family === 4
      ? resolver.resolve4(name, { ttl: true })
      : resolver.resolve6(name, { ttl: true }))
    return answers.map(({ address, ttl }) => ({ address, ttlS: ttl }))
  }
}

/** What a running Hooktide asks: the hosts file as it stands now, then the system's name servers. */
export function systemResolver(clock: Clock): Resolver {
  let hosts = ''
  try {
    hosts = readFileSync('/etc/hosts', 'utf8')
  } catch {
    // A system without one still has localhost.
  }
  return new Resolver({ clock, query: systemQuery(), hosts: parseHosts(hosts) })
}

/** `/etc/hosts` text → names, with `localhost` always on the loopback (RFC 6761). */
export function parseHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const hosts = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address, ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    if (address === undefined || parseIp(address) === null) continue
    for (const name of names) {
      const known = hosts.get(name.toLowerCase())
      if (known === undefined) hosts.set(name.toLowerCase(), [address])
      else if (!known.includes(address)) known.push(address)
    }
  }
  return hosts.set('localhost', ['127.0.0.1', '::1'])
}

function dnsFailure(name: string, error: unknown): Failure {
  const code = (error as { code?: unknown } | null)?.code
  return new Failure(
    'dns',
    typeof code === 'string' ? `${code} for ${name}` : `lookup of ${name} failed: ${String(error)}`,
  )
}
