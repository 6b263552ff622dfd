import type { Config } from '../config.ts'
import { HooktideError } from '../core/error.ts'
import { recordBytes, type TopicPartition } from '../core/record.ts'
import type { GroupState, LogReader } from '../ports.ts'
import { decodeLaneState, decodeSubscription } from '../schema/decode.ts'
import { type Backlog, readBacklog } from './backlog.ts'
import type { Cluster } from './cluster.ts'
import { groupNames, type TopicNames, topicNames } from './names.ts'
import { readLatest, readTopic } from './read-topic.ts'

/** Everything `status` knows. Times are epoch ms, ages ms. */
export interface Status {
  readonly atMs: number
  readonly groups: readonly { readonly group: string; readonly state: string; readonly members: number }[]
  readonly lanes: readonly LaneStatus[]
  readonly tiers: readonly TierStatus[]
  readonly parked: {
    readonly lines: number
    readonly blocked: number
    readonly stopped: number
    readonly draining: number
    readonly deliveries: number
  }
  readonly dead: Count
  readonly rejected: Count
  readonly subscriptions: Readonly<Record<'active' | 'paused' | 'disabled' | 'unreadable', number>>
  readonly lag: readonly {
    readonly group: string
    readonly topic: string
    readonly lag: number
    readonly lost: number
  }[]
  /** Open POSTs of the instances that were asked; null: none was, or it did not say. */
  readonly inFlight: number | null
  readonly unreachable: readonly string[]
}

export interface LaneStatus {
  readonly lane: number
  /** `client@host`; null: nobody. */
  readonly owner: string | null
  readonly committed: number | null
  readonly lag: number
  readonly ready: number
  readonly exact: boolean
  readonly oldestReadyMs: number | null
}

export interface TierStatus {
  readonly tier: string
  readonly delayMs: number
  readonly depth: number
  readonly exact: boolean
  /** When the first of them is ripe (append time + delay); null: none waits. */
  readonly lowestDueMs: number | null
}

export interface Count {
  readonly records: number
  /** False: there were too many to count; markers are in the number. */
  readonly exact: boolean
}

export async function readStatus(
  cluster: Pick<Cluster, 'kafka' | 'admin'>,
  config: Config,
  nowMs: number,
  metrics: { readonly urls: readonly string[]; fetchText(url: string, timeoutMs: number): Promise<string> },
): Promise<Status> {
  const { kafka, admin } = cluster
  const names = topicNames(config)
  const groups = groupNames(config)
  await mustExist(cluster, names)
  const reader = kafka.reader()
  try {
    const sources = [names.deliveries, ...names.tiers.map(({ topic }) => topic)]
    const [states, backlogs, events, lines, dead, rejected, subscriptions, instances] = await Promise.all([
      admin.groups(config.kafka.groupPrefix),
      backlogsOf(cluster, reader, groups.deliverer, sources),
      lagsOf(cluster, reader, groups.router, names.events),
      readLines(reader, names.laneState),
      countRecords(reader, names.dead),
      countRecords(reader, names.rejected),
      countSubscriptions(reader, names.subscriptions),
      askInstances(metrics),
    ])
    const of = (topic: string) => backlogs.filter((backlog) => backlog.topic === topic)
    return {
      atMs: nowMs,
      groups: states.map(({ group, state, members }) => ({ group, state, members: members.length })),
      lanes: of(names.deliveries).map((backlog) =>
        laneStatus(backlog, ownerOf(states, groups.deliverer, backlog), nowMs),
      ),
      tiers: names.tiers.map(({ topic, delayMs }) => tierStatus(topic, delayMs, of(topic))),
      parked: lines,
      dead,
      rejected,
      subscriptions,
      lag: [
        ...events.map(({ topic, lag, lost }) => ({ group: groups.router, topic, lag, lost })),
        ...sources.map((topic) => {
          const lost = sum(of(topic).map((b) => b.lost))
          return { group: groups.deliverer, topic, lag: sum(of(topic).map((b) => b.lag)), lost }
        }),
      ],
      ...instances,
    }
  } finally {
    await reader.close()
  }
}

async function mustExist({ kafka }: Pick<Cluster, 'kafka'>, names: TopicNames): Promise<void> {
  const needed = [
    ...names.events,
    names.subscriptions,
    names.deliveries,
    ...names.tiers.map(({ topic }) => topic),
    names.laneState,
    names.dead,
    names.rejected,
  ]
  const there = await kafka.partitions(needed)
  const missing = needed.filter((topic) => !there.has(topic))
  if (missing.length === 0) return
  throw new HooktideError('topic.missing', `${missing.length} of ${needed.length} topics are missing`, {
    details: missing,
    remedy: 'Run `hooktide topics apply`, or correct kafka.brokers and topics.prefix.',
  })
}

async function backlogsOf(
  { kafka }: Pick<Cluster, 'kafka'>,
  reader: LogReader,
  group: string,
  topics: readonly string[],
): Promise<Backlog[]> {
  const perTopic = await Promise.all(
    topics.map(async (topic) => {
      const [starts, ends] = await Promise.all([reader.starts(topic), reader.ends(topic)])
      const partitions = [...ends.keys()]
        .sort((a, b) => a - b)
        .map((partition): TopicPartition => ({ topic, partition }))
      const committed = await kafka.offsets.committed(group, partitions)
      return Promise.all(
        committed.map((at) => readBacklog(reader, at, starts.get(at.partition) ?? 0, ends.get(at.partition) ?? 0)),
      )
    }),
  )
  return perTopic.flat()
}

/** For topics where only distances count: a router's offsets have no bitmap. */
async function lagsOf({ kafka }: Pick<Cluster, 'kafka'>, reader: LogReader, group: string, topics: readonly string[]) {
  return Promise.all(
    topics.map(async (topic) => {
      const [starts, ends] = await Promise.all([reader.starts(topic), reader.ends(topic)])
      const committed = await kafka.offsets.committed(
        group,
        [...ends.keys()].map((partition) => ({ topic, partition })),
      )
      let lag = 0
      let lost = 0
      for (const { partition, offset } of committed) {
        const [start, end] = [starts.get(partition) ?? 0, ends.get(partition) ?? 0]
        if (offset !== null && offset < start) lost += start - offset
        lag += end - (offset === null || offset > end ? start : Math.max(offset, start))
      }
      return { topic, lag, lost }
    }),
  )
}

async function readLines(reader: LogReader, topic: string): Promise<Status['parked']> {
  let [blocked, stopped, draining, deliveries] = [0, 0, 0, 0]
  for (const { record } of (await readLatest(reader, topic)).values()) {
    const decoded = decodeLaneState(record)
    if (!decoded.ok || decoded.value.kind !== 'line') continue
    if (decoded.value.state === 'blocked') blocked++
    else if (decoded.value.state === 'stopped') stopped++
    else draining++
    deliveries += decoded.value.count
  }
  return { lines: blocked + stopped + draining, blocked, stopped, draining, deliveries }
}

/** Above either, a number of offsets has to do: bodies are read along, and `--watch` does it again and again. */
const countedOffsets = 5000
const countedBytes = 8 * 1024 * 1024

async function countRecords(reader: LogReader, topic: string): Promise<Count> {
  const [starts, ends] = await Promise.all([reader.starts(topic), reader.ends(topic)])
  let offsets = 0
  for (const [partition, end] of ends) offsets += end - (starts.get(partition) ?? 0)
  if (offsets > countedOffsets) return { records: offsets, exact: false }
  let records = 0
  let bytes = 0
  for await (const { record } of readTopic(reader, topic)) {
    records++
    bytes += recordBytes(record)
    if (bytes > countedBytes) return { records: offsets, exact: false }
  }
  return { records, exact: true }
}

async function countSubscriptions(reader: LogReader, topic: string): Promise<Status['subscriptions']> {
  const counts = { active: 0, paused: 0, disabled: 0, unreadable: 0 }
  for (const { record } of (await readLatest(reader, topic)).values()) {
    const decoded = decodeSubscription(record)
    counts[decoded.ok ? decoded.value.status : 'unreadable']++
  }
  return counts
}

export async function askInstances(metrics: {
  readonly urls: readonly string[]
  fetchText(url: string, timeoutMs: number): Promise<string>
}): Promise<Pick<Status, 'inFlight' | 'unreachable'>> {
  let inFlight: number | null = null
  const unreachable: string[] = []
  await Promise.all(
    metrics.urls.map(async (url) => {
      try {
        const open = inFlightOf(await metrics.fetchText(url, 5000))
        if (open !== null) inFlight = (inFlight ?? 0) + open
      } catch {
        unreachable.push(url)
      }
    }),
  )
  return { inFlight, unreachable }
}

/** Sum of the in-flight gauge in a Prometheus text; null when it is not in it. */
export function inFlightOf(text: string): number | null {
  const samples = [...text.matchAll(/^hooktide_(?:\w+_)?in_flight(?:\{[^}]*\})? ([0-9.e+]+)/gm)]
  return samples.length === 0 ? null : sum(samples.map(([, value]) => Number(value)))
}

function ownerOf(states: readonly GroupState[], group: string, at: TopicPartition): string | null {
  const members = states.find((state) => state.group === group)?.members ?? []
  const owner = members.find(({ partitions }) =>
    partitions.some(({ topic, partition }) => topic === at.topic && partition === at.partition),
  )
  return owner === undefined ? null : `${owner.clientId}@${owner.host.replace(/^\//, '')}`
}

function laneStatus(backlog: Backlog, owner: string | null, nowMs: number): LaneStatus {
  const { partition: lane, committed, lag, depth: ready, exact, oldest } = backlog
  const oldestReadyMs = oldest === null ? null : Math.max(0, nowMs - oldest.timestampMs)
  return { lane, owner, committed, lag, ready, exact, oldestReadyMs }
}

function tierStatus(tier: string, delayMs: number, backlogs: readonly Backlog[]): TierStatus {
  const due = backlogs.flatMap(({ oldest }) => (oldest === null ? [] : [oldest.timestampMs + delayMs]))
  return {
    tier,
    delayMs,
    depth: sum(backlogs.map(({ depth }) => depth)),
    exact: backlogs.every(({ exact }) => exact),
    lowestDueMs: due.length === 0 ? null : Math.min(...due),
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0)
}
