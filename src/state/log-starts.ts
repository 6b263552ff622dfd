import type { LogReader } from '../ports.ts'
import type { Source } from './sources.ts'
import type { LogStarts } from './writer.ts'

/** Where the log begins now. `control` is compacted, its state follows keys and not offsets: it is left out. */
export async function logStarts(
  reader: LogReader,
  sources: readonly Source[],
  attemptsTopic: string,
): Promise<LogStarts> {
  const all: { topic: string; partition: number; start: number }[] = []
  for (const { topic, kind } of sources) {
    if (kind === 'control') continue
    for (const [partition, start] of await reader.starts(topic)) all.push({ topic, partition, start })
  }
  const byPlace = new Map(all.map(({ topic, partition, start }) => [`${topic}/${partition}`, start]))
  return { attemptsTopic, all, of: (topic, partition) => byPlace.get(`${topic}/${partition}`) ?? 0 }
}
