import { HooktideError } from '../core/error.ts'
import type { GroupOffset, TopicPartition } from '../core/record.ts'
import type { Clock, GroupConsumer, GroupConsumerOptions, GroupHandlers, Observer } from '../ports.ts'
import type { KafkaClient } from './client.ts'
import { GroupRun } from './group-run.ts'
import { groupSettings } from './group-settings.ts'

/**
 * A group member on kafkajs's connections and codecs, but not on its run loop (docs/decisions/group-consumer.md).
 * Throws `config.invalid` when the drain does not fit into the session.
 */
export function createGroupConsumer(
  client: KafkaClient,
  options: GroupConsumerOptions,
  deps: { readonly clock: Clock; readonly observer: Observer },
): GroupConsumer {
  const settings = groupSettings(client.options.group)
  const mostMs = settings.sessionMs - 2000
  if (options.drainMs > mostMs)
    throw new HooktideError(
      'config.invalid',
      `drainMs of group ${options.group} is ${options.drainMs} ms, at most ${mostMs} ms fit into a session of ${settings.sessionMs} ms`,
      { remedy: 'Lower the drain time or raise the session time-out' },
    )
  return new KafkaGroupConsumer(new GroupRun(client, options, settings, deps), options.group, deps.observer)
}

class KafkaGroupConsumer implements GroupConsumer {
  readonly #run: GroupRun
  readonly #group: string
  readonly #observer: Observer

  constructor(run: GroupRun, group: string, observer: Observer) {
    this.#run = run
    this.#group = group
    this.#observer = observer
  }

  async start(handlers: GroupHandlers): Promise<void> {
    await this.#run.start(handlers)
  }

  pause(partitions: readonly TopicPartition[]): void {
    for (const at of partitions) {
      const owned = this.#run.partitions.get(at)
      if (owned !== undefined) owned.paused = true
    }
  }

  resume(partitions: readonly TopicPartition[]): void {
    for (const at of partitions) {
      const owned = this.#run.partitions.get(at)
      if (owned === undefined) continue
      owned.paused = false
      if (owned.position === null)
        this.#observer.log('error', 'consumer.resumed_without_seek', { group: this.#group, ...at })
    }
    this.#run.pump()
  }

  seek(at: TopicPartition, offset: number): void {
    if (!Number.isSafeInteger(offset) || offset < 0)
      throw new HooktideError('usage', `Seek of ${at.topic}/${at.partition} to ${offset}: an offset is an integer ≥ 0`)
    this.#run.partitions.seek(at, offset)
    this.#run.pump()
  }

  async commit(offsets: readonly GroupOffset[]): Promise<void> {
    if (this.#run.ended)
      throw new HooktideError('usage', `Commit of group ${this.#group} after stop: commit first, then stop`)
    for (const { topic, partition, offset } of offsets) {
      // The broker does not look at who owns what: a commit of another's partition would go through.
      if (offset === null || offset < 0 || this.#run.partitions.get({ topic, partition }) === undefined)
        throw new HooktideError(
          'consumer.failed',
          `Commit of ${topic}/${partition} at ${offset} refused: it is not owned now, or that is no offset`,
        )
    }
    if (offsets.length > 0) await this.#run.commit(offsets)
  }

  leaseAgeMs(): number {
    return this.#run.leaseAgeMs()
  }

  async stop(): Promise<void> {
    await this.#run.stop()
  }
}
