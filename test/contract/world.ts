import type { FetchedBatch, InRecord, OutRecord, TopicPartition } from '../../src/core/record.ts'
import { headerMap } from '../../src/core/record.ts'
import type { Clock, Kafka, LogReader } from '../../src/ports.ts'

export interface TopicWish {
  readonly partitions: number
  readonly appendTime?: boolean
  readonly compacted?: boolean
}

/** A transaction of somebody else that stays open until it is told otherwise. */
export interface ForeignTransaction {
  commit(): Promise<void>
  abort(): Promise<void>
}

/** A broker to hold the contract against: the memory one, or a real one. */
export interface World {
  readonly clock: Clock
  /** Largest record the topics take. */
  readonly maxMessageBytes: number
  readonly sessionTimeoutMs: number
  /** Clients of a process of their own; closed with the world. */
  kafka(processId?: string): Kafka
  /** Name no other test uses. */
  unique(name: string): string
  createTopic(name: string, wish: TopicWish): Promise<string>
  foreignTransaction(at: TopicPartition, values: readonly string[]): Promise<ForeignTransaction>
  /** Resolves when the log holds the last record of each key only (the newest records may be spared). */
  compact(at: TopicPartition): Promise<void>
  /** Runs a test's body; a simulated world moves its time meanwhile. */
  run(body: () => Promise<void>): Promise<void>
  close(): Promise<void>
}

export function out(at: TopicPartition, value: string | null, key: string | null = null): OutRecord {
  return { ...at, key, value: value === null ? null : Buffer.from(value), headers: headerMap() }
}

export function values(records: readonly InRecord[]): (string | null)[] {
  return records.map((record) => record.value?.toString() ?? null)
}

export function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve)
  })
}

/** Waits for a fact. */
export async function until(
  clock: Clock,
  what: string,
  holds: () => boolean | Promise<boolean>,
  maxMs = 20_000,
  everyMs = 10,
) {
  const endMs = clock.mono() + maxMs
  while (!(await holds())) {
    if (clock.mono() > endMs) throw new Error(`not within ${maxMs} ms: ${what}`)
    await sleep(clock, everyMs)
  }
}

/** Everything from `from` to the end that read committed has now, fetch by fetch. */
export async function readAll(
  reader: LogReader,
  at: TopicPartition,
  from = 0,
): Promise<{ records: InRecord[]; batches: FetchedBatch[]; nextOffset: number }> {
  const end = (await reader.ends(at.topic, [at.partition])).get(at.partition) ?? 0
  const records: InRecord[] = []
  const batches: FetchedBatch[] = []
  let next = from
  while (next < end) {
    const batch = await reader.fetch({ ...at, from: next, maxWaitMs: 100 })
    if (batch.nextOffset < next) throw new Error(`nextOffset went back from ${next} to ${batch.nextOffset}`)
    records.push(...batch.records)
    batches.push(batch)
    next = batch.nextOffset
  }
  return { records, batches, nextOffset: next }
}

/** The code of the HooktideError a promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<string> {
  try {
    await promise
  } catch (error) {
    return (error as { code?: string }).code ?? `no code: ${String(error)}`
  }
  return 'resolved'
}
