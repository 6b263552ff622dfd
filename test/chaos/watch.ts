import { HooktideError, messageOf } from '../../src/core/error.ts'
import type { TopicPartition } from '../../src/core/record.ts'
import type { Kafka, LogReader } from '../../src/ports.ts'
import { decodeAttempt } from '../../src/schema/decode.ts'
import type { Position } from '../sim/evidence.ts'
import { wallMs } from './receiver.ts'
import { pause } from './wait.ts'

const everyMs = 60

/**
 * Looks at the running system from outside all the time: what is settled, and which offsets the lanes' group
 * has committed.
 */
export class Watch {
  /** Deliveries with a final settlement. */
  readonly final = new Set<string>()
  /** Every change of a committed offset that was seen. */
  readonly positions: Position[] = []
  readonly problems: string[] = []
  readonly #kafka: Kafka
  readonly #options: { attempts: string; group: string; sources: readonly TopicPartition[] }
  readonly #next = new Map<number, number>()
  readonly #committed = new Map<string, number>()
  #stopped = false
  #running: Promise<unknown> = Promise.resolve()
  samples = 0

  constructor(kafka: Kafka, options: { attempts: string; group: string; sources: readonly TopicPartition[] }) {
    this.#kafka = kafka
    this.#options = options
  }

  start(): void {
    const reader = this.#kafka.reader()
    this.#running = Promise.all([this.#repeat(() => this.#tail(reader)), this.#repeat(() => this.#sample())]).finally(
      () => reader.close(),
    )
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#running
  }

  async #repeat(look: () => Promise<void>): Promise<void> {
    while (!this.#stopped) {
      try {
        await look()
      } catch (error) {
        // A broker that is down is part of the round.
        const expected = error instanceof HooktideError && error.code.startsWith('broker.')
        if (!expected) this.problems.push(`watch: ${messageOf(error)}`)
      }
      await pause(everyMs)
    }
  }

  async #tail(reader: LogReader): Promise<void> {
    const topic = this.#options.attempts
    const ends = await reader.ends(topic)
    await Promise.all(
      [...ends].map(async ([partition, end]) => {
        let from = this.#next.get(partition) ?? 0
        while (from < end) {
          const batch = await reader.fetch({ topic, partition, from })
          for (const record of batch.records) {
            const decoded = decodeAttempt(record)
            if (!decoded.ok) {
              this.problems.push(`watch: ${topic}/${partition}@${record.offset} can not be read: ${decoded.reason}`)
              continue
            }
            const { deliveryId, settlement } = decoded.value
            if (settlement !== 'scheduled' && settlement !== 'released') this.final.add(deliveryId)
          }
          if (batch.nextOffset <= from) break
          from = batch.nextOffset
          this.#next.set(partition, from)
        }
      }),
    )
  }

  async #sample(): Promise<void> {
    const committed = await this.#kafka.offsets.committed(this.#options.group, this.#options.sources)
    this.samples++
    for (const { topic, partition, offset } of committed) {
      if (offset === null) continue
      const at = `${topic}/${partition}`
      const before = this.#committed.get(at)
      if (before === offset) continue
      if (before !== undefined && offset < before)
        this.problems.push(`commit: ${at} was seen to go back from ${before} to ${offset}`)
      this.#committed.set(at, offset)
      this.positions.push({ topic, partition, offset, atMs: wallMs() })
    }
  }
}
