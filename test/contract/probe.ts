import type { FetchedBatch, TopicPartition } from '../../src/core/record.ts'
import type { GroupConsumer, GroupConsumerOptions, GroupHandlers, Kafka } from '../../src/ports.ts'

export interface Assigned {
  readonly gained: readonly string[]
  readonly kept: readonly string[]
  readonly lost: readonly string[]
  readonly generation: number
}

/** A group member that writes down what it is told. */
export class Probe {
  readonly consumer: GroupConsumer
  readonly assigned: Assigned[] = []
  readonly revoking: { deadlineMs: number; lost: boolean }[] = []
  readonly batches: FetchedBatch[] = []
  fatal: Error | null = null
  onBatch: (batch: FetchedBatch) => void = () => {}
  onRevoking: GroupHandlers['onRevoking'] = async () => {}
  /** Called for what is gained, or null: nothing is resumed. */
  startAt: ((at: TopicPartition) => number) | null = null

  constructor(kafka: Kafka, options: GroupConsumerOptions) {
    this.consumer = kafka.consumer(options)
  }

  start(): Promise<void> {
    return this.consumer.start({
      onAssigned: ({ gained, kept, lost, generation }) => {
        this.assigned.push({ gained: names(gained), kept: names(kept), lost: names(lost), generation })
        if (this.startAt === null) return
        for (const at of gained) this.consumer.seek(at, this.startAt(at))
        this.consumer.resume([...gained, ...kept])
      },
      onRevoking: (info) => {
        this.revoking.push({ ...info })
        return this.onRevoking(info)
      },
      onBatch: (batch) => {
        this.batches.push(batch)
        this.onBatch(batch)
      },
      onUndecodable: () => {},
      onFatal: (error) => {
        this.fatal = error
      },
    })
  }

  /** What is owned now, by what was told. */
  get owned(): readonly string[] {
    const last = this.assigned.at(-1)
    return last === undefined ? [] : [...last.gained, ...last.kept].sort()
  }

  get offsets(): readonly number[] {
    return this.batches.flatMap((batch) => batch.records.map((record) => record.offset))
  }

  get values(): readonly string[] {
    return this.batches.flatMap((batch) => batch.records.map((record) => record.value?.toString() ?? ''))
  }
}

export function names(partitions: readonly TopicPartition[]): string[] {
  return partitions.map((at) => `${at.topic}/${at.partition}`).sort()
}
