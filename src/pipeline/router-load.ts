import type { TopicPartition } from '../core/record.ts'
import { type RouterStart, routerStart } from '../core/router-position.ts'
import type { RouterDeps } from './router-deps.ts'

/** Where to begin on each partition, from the committed offsets, the log's bounds and, for a new generation, the lanes' marks. */
export async function routerPositions(
  deps: RouterDeps,
  partitions: readonly TopicPartition[],
): Promise<{ at: TopicPartition; start: RouterStart }[]> {
  const committed = await deps.kafka.offsets.committed(deps.group, partitions)
  const bounds = new Map<string, { starts: ReadonlyMap<number, number>; ends: ReadonlyMap<number, number> }>()
  for (const topic of new Set(partitions.map((at) => at.topic))) {
    const own = partitions.filter((at) => at.topic === topic).map((at) => at.partition)
    bounds.set(topic, { starts: await deps.reader.starts(topic, own), ends: await deps.reader.ends(topic, own) })
  }
  let marks: ReadonlyMap<string, number> | null = null
  const result: { at: TopicPartition; start: RouterStart }[] = []
  for (const at of partitions) {
    const position = committed.find((entry) => entry.topic === at.topic && entry.partition === at.partition)
    const input = {
      committed: position?.offset ?? null,
      metadata: position?.metadata ?? '',
      logStart: bounds.get(at.topic)?.starts.get(at.partition) ?? 0,
      logEnd: bounds.get(at.topic)?.ends.get(at.partition) ?? 0,
      nowMs: deps.clock.now(),
    }
    let start = routerStart({ ...input, highestSeen: null })
    if (start.fresh !== null) {
      if (start.fresh !== 'retention') {
        marks ??= await highestGenerations(deps)
        start = routerStart({ ...input, highestSeen: marks.get(`${at.topic}/${at.partition}`) ?? null })
      }
      const level = start.fresh === 'first-start' ? 'info' : start.fresh === 'retention' ? 'error' : 'warn'
      deps.observer.log(level, 'router.stream_started', {
        topic: at.topic,
        partition: at.partition,
        offset: start.offset,
        generation: start.generation,
        why: start.fresh,
        lost: start.fresh === 'retention' ? input.logStart - (input.committed ?? 0) : undefined,
      })
    }
    result.push({ at, start })
  }
  return result
}

/** Highest generation per stream over all lanes; read only when a new generation begins. */
async function highestGenerations(deps: RouterDeps): Promise<Map<string, number>> {
  const highest = new Map<string, number>()
  const topic = deps.topics.laneState
  const starts = await deps.reader.starts(topic)
  const ends = await deps.reader.ends(topic)
  for (const [partition, start] of starts) {
    const end = ends.get(partition) ?? start
    for (let from = start; from < end; ) {
      const batch = await deps.reader.fetch({ topic, partition, from, maxBytes: 4 << 20 })
      for (const record of batch.records) {
        if (record.value === null || record.key === null) continue
        const key = record.key.toString()
        if (!key.startsWith('stream:')) continue
        const generation = generationOf(record.value)
        const stream = key.slice('stream:'.length)
        if (generation !== null) highest.set(stream, Math.max(highest.get(stream) ?? 0, generation))
      }
      from = batch.nextOffset
    }
  }
  return highest
}

function generationOf(value: Buffer): number | null {
  try {
    const { generation } = JSON.parse(value.toString()) as { generation?: unknown }
    return typeof generation === 'number' && Number.isSafeInteger(generation) ? generation : null
  } catch {
    return null
  }
}
