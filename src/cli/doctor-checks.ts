import { mostHops, worstHops } from '../config/checks.ts'
import { formatDuration } from '../config/units.ts'
import type { Config } from '../config.ts'
import { ClockOffset } from '../core/clock-offset.ts'
import { endpointRefs } from '../core/endpoint-settings.ts'
import { guardPolicy } from '../core/guard-policy.ts'
import { emptyHeaders, type InRecord } from '../core/record.ts'
import type { Result } from '../core/result.ts'
import type { Subscription } from '../core/subscription.ts'
import { isDrift, planLines } from '../core/topology.ts'
import { checkUrl } from '../core/url-rules.ts'
import type { Cluster } from '../operations/cluster.ts'
import { groupNames, topicNames } from '../operations/names.ts'
import { readTopic } from '../operations/read-topic.ts'
import type { SecretTools } from '../operations/tools.ts'
import { readPlan } from '../operations/topic-actions.ts'
import { readTopicSpecs } from '../operations/topic-folder.ts'
import type { Clock } from '../ports.ts'
import { bad, type Found, good, warn } from './doctor-finding.ts'
import { unreadableEntries, unreadableFound } from './doctor-records.ts'
import { ago, plural } from './text.ts'

export async function checkBroker({ admin }: Cluster): Promise<readonly Found[]> {
  const { id, brokers, roundTripMs } = await admin.cluster()
  const found = [good(`cluster ${id}, ${plural(brokers.length, 'broker')}, answers in ${Math.round(roundTripMs)} ms`)]
  if (brokers.length < 3) {
    found.push(
      warn(
        `${plural(brokers.length, 'broker')}: one that fails can stop all writing, and of some records be the only copy`,
        'Run three or more in production.',
      ),
    )
  }
  return found
}

export async function checkTopics({ admin }: Cluster, config: Config): Promise<readonly Found[]> {
  const plans = await readPlan(admin, await readTopicSpecs(config.topics))
  const off = plans.flatMap((plan) => {
    const byHand = plan.refused.length > 0
    const remedy = byHand ? 'See `hooktide topics plan`.' : 'Run `hooktide topics apply`.'
    return planLines(plan).map((line) => (isDrift(plan) ? bad(line, remedy) : warn(line, remedy)))
  })
  return off.length === 0 ? [good(`${plans.length} topics are as they must be`)] : off
}

/**
 * Our clock against the broker's, from append times: tombstones for a key nobody uses are written to `control`, where
 * compaction takes them away and no reader minds them.
 */
export async function checkClock({ kafka }: Cluster, config: Config, clock: Clock): Promise<readonly Found[]> {
  const { control } = topicNames(config)
  const offset = new ClockOffset()
  const producer = kafka.producer()
  try {
    const probe = { topic: control, partition: 0, key: 'doctor:clock', value: null, headers: emptyHeaders }
    for (let i = 0; i < 5; i++) {
      const sentMs = clock.now()
      const [appended] = await producer.send([probe])
      if (appended?.appendTimeMs == null) {
        return [warn(`unknown: ${control} does not carry append times`, 'Run `hooktide topics apply`.')]
      }
      offset.sample(sentMs, clock.now(), appended.appendTimeMs)
    }
  } finally {
    await producer.close()
  }
  const ms = Math.round(offset.estimateMs ?? 0)
  const message = `the broker's clock is ${Math.abs(ms)} ms ${ms < 0 ? 'behind' : 'ahead of'} ours`
  if (Math.abs(ms) < 500) return [good(message)]
  const remedy = 'Synchronise the clocks (NTP) of the brokers and of this machine.'
  // Receivers refuse signatures that are older or newer than five minutes.
  return [Math.abs(ms) < 60_000 ? warn(message, remedy) : bad(message, remedy)]
}

export function checkSubscriptions(table: ReadonlyMap<string, Result<Subscription>>, config: Config): readonly Found[] {
  const found: Found[] = []
  const policy = guardPolicy(config.http)
  const retry = config.retry
  let counted = 0
  for (const [id, entry] of table) {
    if (!entry.ok) continue
    counted++
    const url = policy.ok ? checkUrl(entry.value.url, policy.value) : null
    if (url?.ok === false) {
      found.push(
        bad(
          `${id}: ${url.reason}; its deliveries die as blocked`,
          'Change its URL, or http.allowPrivate and http.allowHttp.',
        ),
      )
    }
    const capMs = entry.value.retry?.capMs ?? retry.capMs
    const hops = worstHops(config.topics.tiers, Math.max(capMs, retry.retryAfterCapMs))
    if (hops > mostHops) {
      found.push(
        bad(
          `${id}: its retry.capMs (${formatDuration(capMs)}) takes ${hops} moves through the tiers`,
          'Lower it, or add longer tiers.',
        ),
      )
    }
    if (entry.value.status === 'disabled') {
      const why = entry.value.statusReason === undefined ? '' : ` (${entry.value.statusReason})`
      found.push(warn(`${id} is disabled${why}: its events are dropped`, 'Enable or remove it.'))
    }
  }
  const unreadable = unreadableFound('subscription', unreadableEntries(table), {
    newer: 'Upgrade this Hooktide; until then its deliveries wait.',
    damaged: 'Write it again, or remove it; `hooktide subscriptions list` shows all of them.',
  })
  return [good(`${plural(counted, 'subscription')} can be read`), ...unreadable, ...found]
}

/** Every secret that signs now or will. What `env:` means is this process's environment, not the service's. */
export async function checkSecrets(
  { kafka }: Cluster,
  config: Config,
  table: ReadonlyMap<string, Result<Subscription>>,
  tools: SecretTools,
  nowMs: number,
): Promise<readonly Found[]> {
  const sealed: Pick<InRecord, 'key' | 'value'>[] = []
  const reader = kafka.reader()
  try {
    for await (const { record } of readTopic(reader, topicNames(config).secrets)) sealed.push(record)
  } finally {
    await reader.close()
  }
  const resolve = tools.resolver(config, sealed)
  const found: Found[] = []
  const refs = new Set<string>()
  for (const [id, entry] of table) {
    if (!entry.ok) continue
    const current = entry.value.secrets.filter(({ untilMs }) => (untilMs ?? Number.POSITIVE_INFINITY) > nowMs)
    if (!current.some(({ fromMs }) => (fromMs ?? 0) <= nowMs)) {
      found.push(bad(`${id}: no secret signs now`, `Run \`hooktide subscriptions rotate-secret ${id}\`.`))
    }
    const wanted = [
      ...current.map(({ ref }) => ({ ref, as: 'key' as const })),
      ...endpointRefs(entry.value).map((ref) => ({ ref, as: 'text' as const })),
    ]
    for (const { ref, as } of wanted) {
      refs.add(ref)
      const key = resolve(ref, as)
      if (key.ok) continue
      const elsewhere = ref.startsWith('env:') ? ' If only the service has it, run doctor with its environment.' : ''
      found.push(bad(`${id}: ${key.reason}`, `Nothing is delivered to it until this is right.${elsewhere}`))
    }
  }
  const keys = tools.masterKeys(config)
  if (!keys.ok && sealed.length > 0) found.push(bad(keys.reason, 'Set secrets.masterKeyRef.'))
  return found.length === 0 ? [good(`${plural(refs.size, 'secret')} can be resolved`)] : found
}

export async function checkGroups({ admin }: Cluster, config: Config): Promise<readonly Found[]> {
  const states = await admin.groups(config.kafka.groupPrefix)
  return Object.entries(groupNames(config)).map(([role, group]) => {
    const state = states.find((candidate) => candidate.group === group)
    if (state === undefined || state.members.length === 0) {
      return warn(`no ${role} is running (group ${group})`, `Start one: hooktide up --roles ${role}`)
    }
    const idle = state.state === 'Stable' ? state.members.filter(({ partitions }) => partitions.length === 0).length : 0
    if (idle > 0) {
      const what = role === 'router' ? 'partitions of the events topics' : `lanes (${config.topics.lanes})`
      return warn(
        `${role}: ${idle} of ${plural(state.members.length, 'member')} are idle: there are not more ${what}`,
        `Run fewer, or a larger maxInFlight each; docs/scaling.md.`,
      )
    }
    return good(`${role}: ${plural(state.members.length, 'member')}, ${state.state}`)
  })
}

/** Work that retention took before it was done can't be brought back: it must not go unseen. */
export async function checkRetention({ kafka }: Cluster, config: Config): Promise<readonly Found[]> {
  const names = topicNames(config)
  const groups = groupNames(config)
  const reader = kafka.reader()
  try {
    const found: Found[] = []
    const pairs = [
      ...names.events.map((topic) => [groups.router, topic] as const),
      ...[names.deliveries, ...names.tiers.map(({ topic }) => topic)].map(
        (topic) => [groups.deliverer, topic] as const,
      ),
    ]
    for (const [group, topic] of pairs) {
      const starts = await reader.starts(topic)
      const partitions = [...starts.keys()].map((partition) => ({ topic, partition }))
      for (const { partition, offset } of await kafka.offsets.committed(group, partitions)) {
        const gap = offset === null ? 0 : (starts.get(partition) ?? 0) - offset
        if (gap > 0)
          found.push(
            bad(
              `${topic}/${partition}: retention took ${gap} offsets before they were done`,
              'Raise retention.ms; find out why the service was so far behind.',
            ),
          )
      }
    }
    return found.length === 0 ? [good('retention has taken nothing that was not done')] : found
  } finally {
    await reader.close()
  }
}

export function checkLadder(config: Config): readonly Found[] {
  const { tiers } = config.topics
  const longestMs = Math.max(config.retry.capMs, config.retry.retryAfterCapMs)
  const names = tiers.map(({ name }) => name).join(', ')
  return [
    good(
      `${plural(tiers.length, 'tier')} (${names}) serve delays up to ${ago(longestMs)} in ${plural(worstHops(tiers, longestMs), 'move')}`,
    ),
  ]
}
