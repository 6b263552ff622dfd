import { type DeadLetter, redriveRecord } from '../core/dead-letter.ts'
import { HooktideError, messageOf } from '../core/error.ts'
import { partitionOf } from '../core/partition.ts'
import type { OutRecord } from '../core/record.ts'
import type { Clock, Producer } from '../ports.ts'
import { type Cursor, cursorText } from './cursor.ts'
import type { Progress } from './progress.ts'
import { sleep } from './sleep.ts'

export interface RedriveResult {
  redriven: number
  /** Died more than once; sent once. */
  repeated: number
  /** Headers that can't be read, or a subscription that is gone: nothing would come of them. */
  unreadable: number
  orphaned: number
  /** Delivery ids among them, whatever became of them. */
  readonly met: ReadonlySet<string>
  /** Everything before it is dealt with. */
  next: Cursor | null
}

export interface RedriveOptions {
  readonly job: string
  readonly deliveriesTopic: string
  readonly lanes: number
  readonly perSecond: number | null
  readonly dryRun: boolean
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly progress: Progress
  isKnown(subscriptionId: string): boolean
}

const batchRecords = 200
const batchBytes = 512 * 1024

/** Sends dead letters again in the order they come. Each batch is acknowledged before the next is sent. */
export async function redrive(
  letters: AsyncIterable<DeadLetter>,
  producer: Producer,
  options: RedriveOptions,
): Promise<RedriveResult> {
  const { clock, job, perSecond, signal, progress } = options
  const met = new Set<string>()
  const result: RedriveResult = { redriven: 0, repeated: 0, unreadable: 0, orphaned: 0, met, next: null }
  const seen = new Set<string>()
  const startMs = clock.mono()
  let batch: OutRecord[] = []
  let bytes = 0
  let next: Cursor | null = null
  let counter = 0
  const flush = async () => {
    if (batch.length > 0 && !options.dryRun) {
      try {
        await producer.send(batch)
      } catch (cause) {
        throw stopped(job, result, cause)
      }
    }
    result.redriven += batch.length
    result.next = next
    batch = []
    bytes = 0
    progress.update(`${result.redriven} dead letters redriven`)
  }
  for await (const letter of letters) {
    if (signal.aborted) break
    const { delivery } = letter
    if (delivery !== null) met.add(delivery.id)
    if (delivery === null) result.unreadable++
    else if (!options.isKnown(delivery.subscriptionId)) result.orphaned++
    else if (seen.has(delivery.id)) result.repeated++
    else {
      if (perSecond !== null && !options.dryRun) {
        const waitMs = (counter * 1000) / perSecond - (clock.mono() - startMs)
        if (waitMs > 0) {
          await flush()
          await sleep(clock, waitMs, signal)
          if (signal.aborted) break
        }
      }
      seen.add(delivery.id)
      const origin = { stream: `redrive:${job}`, generation: 1, offset: counter++ }
      const record = redriveRecord(
        letter,
        origin,
        options.deliveriesTopic,
        partitionOf(delivery.subscriptionId, options.lanes),
      ) as OutRecord
      batch.push(record)
      bytes += delivery.body.length + 1024
    }
    next = { partition: letter.partition, offset: letter.record.offset + 1 }
    if (batch.length >= batchRecords || bytes >= batchBytes) await flush()
  }
  await flush()
  return result
}

function stopped(job: string, result: RedriveResult, cause: unknown): HooktideError {
  const from = result.next === null ? '' : ` and --cursor ${cursorText(result.next)}`
  return new HooktideError('producer.failed', `job ${job} stopped after ${result.redriven}: ${messageOf(cause)}`, {
    cause,
    remedy: `Run it again with the same filters${from}; what was in the last batch may be sent twice, under the same ids.`,
  })
}
