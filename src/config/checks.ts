import type { Tier } from '../core/ladder.ts'
import { isLoopback, listenAddress } from '../core/listen-address.ts'
import type { Problem } from '../core/result.ts'
import type { Config } from './table.ts'
import { formatDuration as d } from './units.ts'

/** Settling and committing what ended at the last moment of a drain. */
export const commitSlackMs = 1000
/** Leaving the groups, closing sockets and the last log lines, before the platform kills us. */
export const exitSlackMs = 2000
/** What a lane's in-memory heap may hold a delivery for: the part of a delay below the smallest tier. */
export const longestHeapWaitMs = 60_000
/** Moves one delay may take through the ladder; each is a record written and read again. */
export const mostHops = 100
const manyHops = 40
/** A broker may be slow to answer heartbeats (every 500 ms) for so long before a healthy member stops working. */
const leastLeaseMs = 5000
/** JoinGroup itself, after the drain (design, kafkajs row 9). */
const rejoinSlackMs = 2000

export interface Findings {
  readonly problems: Problem[]
  readonly warnings: string[]
}

/** What no single key can tell. Problems stop the start; warnings are legal but rarely meant. */
export function crossChecks(c: Config): Findings {
  const problems: Problem[] = []
  const warnings: string[] = []
  const bad = (field: string, value: string, message: string, remedy: string) =>
    problems.push({ field, value, message, remedy })
  ladder(c, bad, warnings)
  times(c, bad, warnings)
  topics(c, bad)
  access(c, bad, warnings)
  limits(c, warnings)
  state(c, bad)
  api(c, bad)
  return { problems, warnings }
}

function api({ api }: Config, bad: Bad): void {
  if (api.listen === null) return
  const address = listenAddress(api.listen)
  if (address === null) {
    bad('api.listen', api.listen, 'is no address', 'write host:port, e.g. 127.0.0.1:9401')
    return
  }
  if (api.auth === 'off' && !isLoopback(address))
    bad('api.auth', 'off', `is only for loopback, not for ${address.host}`, 'write required and give tokens')
  if (api.auth === 'required' && api.tokens.length === 0 && api.tokensFile === null)
    bad(
      'api.tokens',
      '',
      'are missing: nobody could use the API',
      'run `hooktide tokens create`, or set api.tokensFile',
    )
}

function state({ state }: Config, bad: Bad): void {
  if (state.store !== 'postgres' || state.urlRef !== null) return
  bad('state.urlRef', '', 'is missing; state.store is postgres', 'Write env:NAME or file:PATH of the database URL.')
}

type Bad = (field: string, value: string, message: string, remedy: string) => void

function ladder(c: Config, bad: Bad, warnings: string[]): void {
  const { tiers } = c.topics
  const { retry } = c
  for (const [i, tier] of tiers.entries()) {
    const before = tiers[i - 1]
    if (before !== undefined && tier.delayMs <= before.delayMs)
      bad(
        'topics.tiers',
        tier.name,
        `is not longer than ${before.name} before it`,
        'order tiers by delay, each longer than the last',
      )
  }
  if (new Set(tiers.map((tier) => tier.name)).size < tiers.length)
    bad('topics.tiers', '', 'names a tier twice', 'give each tier its own name')
  if (retry.baseMs > retry.capMs)
    bad('retry.cap', d(retry.capMs), `is below retry.base (${d(retry.baseMs)})`, 'raise cap or lower base')
  const smallest = tiers[0]
  if (smallest !== undefined && smallest.delayMs > longestHeapWaitMs) {
    const most = d(longestHeapWaitMs)
    bad(
      'topics.tiers',
      smallest.name,
      `leaves delays below ${d(smallest.delayMs)} to memory, which holds at most ${most}`,
      `add a tier of at most ${most}`,
    )
  }
  const longest = Math.max(retry.capMs, retry.retryAfterCapMs)
  const hops = worstHops(tiers, longest)
  if (hops > mostHops)
    bad(
      'topics.tiers',
      `${hops} moves`,
      `can not serve a delay of ${d(longest)}: at most ${mostHops} moves`,
      'add longer tiers, or lower retry.cap and retry.retryAfterCap',
    )
  else if (hops > manyHops)
    warnings.push(
      `topics.tiers: a delay of up to ${d(longest)} takes up to ${hops} moves; add a tier between two that are far apart`,
    )
  // A fresh failure always waits at least one and a half of the shortest tier (retryDelayMs), whatever the base is.
  const backoff = Math.min(retry.capMs, retry.baseMs * retry.factor ** Math.max(0, retry.maxAttempts - 2))
  const reach = Math.max(backoff, retry.retryAfterCapMs, (smallest?.delayMs ?? 0) * 1.5)
  for (const tier of retry.maxAttempts < 2 ? [] : tiers)
    if (tier.delayMs > reach)
      warnings.push(
        `topics.tiers: ${tier.name} is never reached: no delay is longer than ${d(Math.round(reach))}; remove it, or raise retry.maxAttempts, retry.factor or retry.cap`,
      )
  if (retry.maxAttempts < 2)
    warnings.push('retry.maxAttempts 1: nothing is ever retried and no tier is reached; raise it')
}

/** Most moves a delay up to `longestMs` takes: the largest tier that fits, then what remains, down the ladder. */
export function worstHops(tiers: readonly Tier[], longestMs: number): number {
  let hops = 0
  let left = longestMs
  for (const tier of tiers.toSorted((a, b) => b.delayMs - a.delayMs)) {
    if (tier.delayMs > left) continue
    hops += Math.floor(left / tier.delayMs)
    left = tier.delayMs - 1
  }
  return hops
}

/** Nothing is POSTed any more when the coordinator has not confirmed our membership for so long: what is open then ends before someone else may start it. */
export function leaseMs(c: Config): number {
  return c.kafka.sessionTimeoutMs - c.http.totalTimeoutMs - commitSlackMs
}

/** The lease rule: an open POST must be able to end, and its settlement to be committed, before someone else may start it. */
function times(c: Config, bad: Bad, warnings: string[]): void {
  const { shutdown, http, kafka, deliverer } = c
  if (http.connectTimeoutMs >= http.totalTimeoutMs)
    bad(
      'http.connectTimeout',
      d(http.connectTimeoutMs),
      `is not below http.totalTimeout (${d(http.totalTimeoutMs)})`,
      'lower it',
    )
  const needed = shutdown.drainMs + http.totalTimeoutMs + commitSlackMs + exitSlackMs
  if (needed >= shutdown.gracePeriodMs)
    bad(
      'shutdown.gracePeriod',
      d(shutdown.gracePeriodMs),
      `is not above ${d(needed)} = shutdown.drain + http.totalTimeout + ${d(commitSlackMs + exitSlackMs)}`,
      'raise it together with terminationGracePeriodSeconds, or lower shutdown.drain',
    )
  const post = http.totalTimeoutMs + commitSlackMs
  if (shutdown.drainMs < post)
    warnings.push(
      `shutdown.drain (${d(shutdown.drainMs)}) is shorter than one POST may take (${d(post)}): each stop can repeat open deliveries; raise it`,
    )
  const lease = leaseMs(c)
  if (lease < leastLeaseMs)
    bad(
      'kafka.sessionTimeout',
      d(kafka.sessionTimeoutMs),
      `leaves no time to start POSTs: it must be at least http.totalTimeout + ${d(commitSlackMs + leastLeaseMs)}`,
      'raise it, or lower http.totalTimeout',
    )
  const mostDrain = kafka.sessionTimeoutMs - rejoinSlackMs
  if (deliverer.drainMs > mostDrain)
    bad(
      'deliverer.drain',
      d(deliverer.drainMs),
      `is above ${d(mostDrain)} = kafka.sessionTimeout − ${d(rejoinSlackMs)}`,
      'lower it, or raise kafka.sessionTimeout',
    )
  else if (deliverer.drainMs < post)
    warnings.push(
      `deliverer.drain (${d(deliverer.drainMs)}) is shorter than one POST may take (${d(post)}): each rebalance can repeat open deliveries; raise it`,
    )
}

const internalTopics = [
  'subscriptions',
  'secrets',
  'deliveries',
  'parked',
  'lane-state',
  'dead',
  'attempts',
  'rejected',
  'control',
]

function topics(c: Config, bad: Bad): void {
  const { prefix, events, tiers } = c.topics
  const internal = new Set([...internalTopics, ...tiers.map((tier) => tier.name)].map((name) => prefix + name))
  for (const name of events)
    if (internal.has(name))
      bad('topics.events', name, "is one of Hooktide's own topics", 'name another topic, or change topics.prefix')
  for (const tier of tiers)
    if (internalTopics.includes(tier.name))
      bad('topics.tiers', tier.name, 'is the name of another topic', 'name it after its delay, e.g. retry-10s')
}

function access(c: Config, bad: Bad, warnings: string[]): void {
  const { ssl, sasl } = c.kafka
  if ((ssl.cert === null) !== (ssl.key === null))
    bad(
      ssl.cert === null ? 'kafka.ssl.cert' : 'kafka.ssl.key',
      '',
      'is missing',
      'a client certificate needs both cert and key',
    )
  if (!ssl.enabled && (ssl.ca !== null || ssl.cert !== null || ssl.key !== null))
    bad('kafka.ssl.enabled', 'false', 'makes the other kafka.ssl keys useless', 'set it to true or remove them')
  const given = { username: sasl.username, passwordRef: sasl.passwordRef }
  for (const [key, value] of Object.entries(given)) {
    if (sasl.mechanism !== null && value === null)
      bad(`kafka.sasl.${key}`, '', `is missing for mechanism ${sasl.mechanism}`, 'add it')
    if (sasl.mechanism === null && value !== null)
      bad(
        'kafka.sasl.mechanism',
        '',
        `is missing, but kafka.sasl.${key} is set`,
        'write plain, scram-sha-256 or scram-sha-512',
      )
  }
  if (sasl.mechanism === 'plain' && !ssl.enabled)
    warnings.push('kafka.sasl.mechanism plain without kafka.ssl sends the password in clear; set kafka.ssl.enabled')
  if (c.http.proxy.credentialsRef !== null && c.http.proxy.url === null)
    bad('http.proxy.url', '', 'is missing, but http.proxy.credentialsRef is set', 'write http://host:port')
  for (const [field, ref] of [
    ['kafka.sasl.passwordRef', sasl.passwordRef],
    ['secrets.masterKeyRef', c.secrets.masterKeyRef],
    ['http.proxy.credentialsRef', c.http.proxy.credentialsRef],
  ] as const)
    if (ref?.startsWith('file:') && c.secrets.directory === null)
      bad(
        field,
        '***',
        'is a file, but secrets.directory is not set',
        'set secrets.directory to the directory the file is in',
      )
}

function limits(c: Config, warnings: string[]): void {
  const { deliverer } = c
  for (const key of ['perSubscription', 'perOrigin'] as const)
    if (deliverer[key] > deliverer.maxInFlight)
      warnings.push(
        `deliverer.${key} (${deliverer[key]}) is above deliverer.maxInFlight (${deliverer.maxInFlight}) and limits nothing; lower it`,
      )
  if (deliverer.maxBufferBytes < deliverer.bufferPerLane.bytes)
    warnings.push(
      'deliverer.maxBufferBytes is below deliverer.bufferPerLane.bytes, which then limits nothing; raise it',
    )
  if (deliverer.commitMovesEveryMs > deliverer.commitEveryMs)
    warnings.push('deliverer.commitMovesEvery is above deliverer.commitEvery and is never waited for; lower it')
  if (c.http.maxSocketsPerOrigin < Math.min(deliverer.perOrigin, deliverer.maxInFlight))
    warnings.push(
      `http.maxSocketsPerOrigin (${c.http.maxSocketsPerOrigin}) is below deliverer.perOrigin (${deliverer.perOrigin}): POSTs wait for a socket while their deadline runs; raise it`,
    )
  if (c.http.allowMetadata)
    warnings.push(
      'http.allowMetadata lets subscriptions reach the cloud metadata service; leave it false unless you run a test of it',
    )
}
