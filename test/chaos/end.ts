import type { Config } from '../../src/config.ts'
import { messageOf } from '../../src/core/error.ts'
import { groupNames, topicNames } from '../../src/operations/names.ts'
import { readLatest } from '../../src/operations/read-topic.ts'
import { inFlightOf } from '../../src/operations/status-read.ts'
import type { Kafka, TopicAdmin } from '../../src/ports.ts'
import type { Fleet } from './fleet.ts'
import type { RemoteReceiver } from './remote-receiver.ts'
import { pause } from './wait.ts'
import type { Watch } from './watch.ts'

export interface EndDeps {
  readonly kafka: Kafka
  readonly admin: TopicAdmin
  readonly config: Config
  readonly watch: Watch
  readonly receiver: RemoteReceiver
  readonly fleet: Fleet
}

/** What is not at its end yet, one line each; none: everything is final and at rest. Cheap things are asked first. */
export async function openEnds(deps: EndDeps, expected: number): Promise<string[]> {
  const { kafka, admin, config, watch, receiver, fleet } = deps
  const ends: string[] = []
  if (watch.final.size < expected) ends.push(`${expected - watch.final.size} of ${expected} deliveries are not final`)
  if (ends.length > 0) return ends
  const open = await receiver.open()
  if (open > 0) return [`${open} POSTs are open`]
  const topics = topicNames(config)
  const groups = groupNames(config)
  const reader = kafka.reader()
  try {
    const lagOf = async (group: string, topic: string) => {
      const logEnds = await reader.ends(topic)
      const committed = await kafka.offsets.committed(
        group,
        [...logEnds.keys()].map((partition) => ({ topic, partition })),
      )
      for (const { partition, offset } of committed) {
        const end = logEnds.get(partition) ?? 0
        if ((offset ?? 0) !== end) ends.push(`lag: ${topic}/${partition} is committed at ${offset}, and ends at ${end}`)
      }
    }
    await Promise.all([
      ...topics.events.map((topic) => lagOf(groups.router, topic)),
      ...[topics.deliveries, ...topics.tiers.map(({ topic }) => topic)].map((topic) => lagOf(groups.deliverer, topic)),
    ])
    for (const [key, { partition, record }] of await readLatest(reader, topics.laneState)) {
      if (key.startsWith('line:')) ends.push(`lane ${partition}: ${key} is ${record.value?.toString()}`)
    }
    const states = await admin.groups(config.kafka.groupPrefix)
    const deliverer = states.find(({ group }) => group === groups.deliverer)
    const owned = new Set(
      deliverer?.members.flatMap(({ partitions }) =>
        partitions.filter(({ topic }) => topic === topics.deliveries).map(({ partition }) => partition),
      ),
    )
    for (let lane = 0; lane < config.topics.lanes; lane++) if (!owned.has(lane)) ends.push(`lane ${lane} has no owner`)
    for (const { group, state } of states) if (state !== 'Stable') ends.push(`group ${group} is ${state}`)
  } finally {
    await reader.close()
  }
  for (const worker of fleet.living) {
    const port = worker.port()
    if (port === null) {
      ends.push(`${worker.id} has not started`)
      continue
    }
    const page = await fetch(`http://127.0.0.1:${port}/metrics`, { signal: AbortSignal.timeout(5_000) })
    const text = await page.text()
    const open = inFlightOf(text)
    if (open !== 0) ends.push(`${worker.id} has ${open} POSTs in flight by its metrics`)
    for (const [, name, value] of text.matchAll(/^(hooktide_ready_depth|hooktide_tier_held\{[^}]*\}) ([0-9.e+]+)/gm))
      if (Number(value) !== 0) ends.push(`${worker.id}: ${name} is ${value}`)
  }
  return ends
}

/**
 * Waits for the end; resolves with what was still open when nothing more had become final for `stillMs`, or in the end
 * when eight times as long had passed: a line that works off hundreds of deliveries one by one is slow, not stuck.
 */
export async function awaitEnd(deps: EndDeps, expected: number, stillMs: number): Promise<string[]> {
  const lastMs = performance.now() + 8 * stillMs
  let final = -1
  let movedMs = performance.now()
  for (;;) {
    const ends = await openEnds(deps, expected).catch((error: unknown) => [`could not look: ${messageOf(error)}`])
    if (ends.length === 0) return []
    const nowMs = performance.now()
    if (deps.watch.final.size !== final) {
      final = deps.watch.final.size
      movedMs = nowMs
    }
    if (nowMs - movedMs > stillMs || nowMs > lastMs) return ends
    await pause(250)
  }
}
