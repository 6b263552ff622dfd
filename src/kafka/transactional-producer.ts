import { HooktideError, messageOf } from '../core/error.ts'
import type { Appended, Transaction, TransactionalProducer } from '../ports.ts'
import { rounds } from './chunks.ts'
import type { KafkaClient } from './client.ts'
import { insist } from './deadline.ts'
import { type Doing, isFenced, isTooLarge, missingTopic, translate } from './errors.ts'
import type { Broker, TxnContext } from './internals.ts'
import { library } from './load.ts'
import { ProducerSession } from './session.ts'

type State = 'new' | 'ready' | 'busy' | 'dead'

/**
 * One transactional id (KIP-98). Offsets go beside the records, not behind them. Each request can be repeated safely
 * within its transaction (the coordinator recognises it), so a lost answer is no failure as long as there is time.
 * Kafka acknowledges a commit before it has written the markers: readers, and OffsetFetch, may see it some ms later. A
 * `fence` waits for them.
 */
export class KafkaTransactionalProducer implements TransactionalProducer {
  readonly #client: KafkaClient
  readonly #id: string
  readonly #session: ProducerSession
  #state: State = 'new'

  constructor(client: KafkaClient, transactionalId: string) {
    this.#client = client
    this.#id = transactionalId
    this.#session = new ProducerSession(client, transactionalId)
  }

  async fence(): Promise<void> {
    this.#enter(['new', 'ready'])
    try {
      await this.#session.init(this.#deadlineMs())
      this.#state = 'ready'
    } catch (error) {
      throw this.#dead(error, 'fence')
    }
  }

  async transact(transaction: Transaction): Promise<readonly Appended[]> {
    if (this.#state === 'new') await this.fence()
    this.#enter(['ready'])
    const deadlineMs = this.#deadlineMs()
    let ending = false
    try {
      const appended = await this.#write(transaction, deadlineMs)
      ending = true
      if (transaction.records.length > 0 || transaction.offsets.length > 0) await this.#end(true, deadlineMs)
      this.#state = 'ready'
      return appended
    } catch (error) {
      if (isTooLarge(error)) throw await this.#abortTooLarge(error, deadlineMs)
      throw this.#dead(error, ending ? 'commit' : 'write')
    }
  }

  /** Cuts the connections. A transaction that is open stays so until the next owner fences it or it times out. */
  async close(): Promise<void> {
    this.#state = 'dead'
    this.#session.close()
  }

  async #write(transaction: Transaction, deadlineMs: number): Promise<Appended[]> {
    const { records, group } = transaction
    const offsets = groupByTopic(
      transaction.offsets.flatMap((o) => (o.offset === null ? [] : [{ ...o, offset: String(o.offset) }])),
    )
    const plan = rounds(records)
    const partitions = (plan[0] ?? []).map(({ topic, partition }) => ({ topic, partition }))
    const topics = groupByTopic(partitions).map(({ topic, partitions }) => ({
      topic,
      partitions: partitions.map((p) => p.partition),
    }))

    if (topics.length > 0) {
      await this.#coordinated(deadlineMs, { operation: 'begin a transaction' }, (broker, txn) =>
        this.#addPartitions(broker, txn, topics),
      )
    }
    const appended: Appended[] = []
    await both(
      this.#append(plan, appended, deadlineMs),
      offsets.length === 0 ? null : this.#commitOffsets(group, offsets, deadlineMs),
    )
    return appended
  }

  /** All partitions or none: those that are not at fault come back as OPERATION_NOT_ATTEMPTED. */
  async #addPartitions(
    broker: Broker,
    txn: TxnContext,
    topics: { topic: string; partitions: number[] }[],
  ): Promise<void> {
    const { errors } = await this.#session.link.request<AddPartitionsResponse>(broker, 'AddPartitionsToTxn', {
      ...txn,
      topics,
    })
    for (const { topic, partitionErrors } of errors) {
      for (const { errorCode } of partitionErrors) {
        if (errorCode === 0 || errorCode === notAttemptedCode) continue
        throw errorCode === 3 ? missingTopic(topic) : Object.assign(library.createErrorFromCode(errorCode), { topic })
      }
    }
  }

  async #append(plan: ReturnType<typeof rounds>, appended: Appended[], deadlineMs: number): Promise<void> {
    for (const round of plan) {
      for (const { result } of await this.#session.append(round, deadlineMs)) {
        if ('error' in result) throw result.error
        appended.push(result)
      }
    }
  }

  async #commitOffsets(
    group: string,
    topics: { topic: string; partitions: { partition: number; offset: string; metadata: string }[] }[],
    deadlineMs: number,
  ): Promise<void> {
    const { link } = this.#session
    await this.#coordinated(deadlineMs, { operation: 'add offsets to a transaction', group }, (broker, txn) =>
      link.ask(broker, 'AddOffsetsToTxn', { ...txn, groupId: group }),
    )
    await this.#insist(
      deadlineMs,
      { operation: 'commit offsets in a transaction', group },
      [`group:${group}`],
      async () => {
        const broker = await link.coordinator('group', group)
        await link.ask(broker, 'TxnOffsetCommit', { ...this.#txn(), groupId: group, topics })
      },
    )
  }

  /** EndTxn. Repeating it is safe: the coordinator answers a repeated end of the same epoch with success (KIP-98). */
  #end(commit: boolean, deadlineMs: number): Promise<void> {
    return this.#coordinated(
      deadlineMs,
      { operation: commit ? 'commit a transaction' : 'abort a transaction' },
      (broker, txn) => this.#session.link.ask(broker, 'EndTxn', { ...txn, transactionResult: commit }),
    )
  }

  async #abortTooLarge(error: unknown, deadlineMs: number): Promise<HooktideError> {
    const topic = (error as { topic?: string }).topic
    try {
      await this.#end(false, deadlineMs)
    } catch (failure) {
      return this.#dead(failure, 'abort')
    }
    this.#state = 'dead'
    this.#session.close()
    return translate(error, { operation: 'produce', topic, transactionalId: this.#id })
  }

  #coordinated(
    deadlineMs: number,
    doing: Doing,
    call: (broker: Broker, txn: TxnContext) => Promise<unknown>,
  ): Promise<void> {
    const { link } = this.#session
    return this.#insist(deadlineMs, doing, [`transaction:${this.#id}`], async () => {
      const broker = await link.coordinator('transaction', this.#id)
      await call(broker, this.#txn())
    })
  }

  async #insist(deadlineMs: number, doing: Doing, coordinators: string[], attempt: () => Promise<void>): Promise<void> {
    const { link } = this.#session
    try {
      await insist(this.#client.deps.clock, deadlineMs, doing.operation, attempt, (error) =>
        link.forget(error, { coordinators }),
      )
    } catch (error) {
      throw isFenced(error) || isTooLarge(error)
        ? error
        : translate(error, { transactionalId: this.#id, topic: (error as { topic?: string }).topic, ...doing })
    }
  }

  #txn(): TxnContext {
    const { producerId, producerEpoch } = this.#session.identity
    return { transactionalId: this.#id, producerId, producerEpoch }
  }

  #enter(legal: readonly State[]): void {
    if (this.#state === 'dead')
      throw new HooktideError('producer.closed', `Transactional producer ${this.#id} is dead: open another`)
    if (!legal.includes(this.#state))
      throw new HooktideError('internal', `Transactional producer ${this.#id} is ${this.#state}`)
    this.#state = 'busy'
  }

  #dead(error: unknown, during: 'fence' | 'write' | 'commit' | 'abort'): HooktideError {
    this.#state = 'dead'
    this.#session.close()
    const doing = {
      operation: 'run a transaction',
      topic: (error as { topic?: string }).topic,
      transactionalId: this.#id,
    }
    const translated = translate(error, doing)
    this.#client.deps.observer.log('warn', 'transaction.failed', {
      transactionalId: this.#id,
      during,
      code: translated.code,
      message: translated.message,
    })
    if (passedOn.has(translated.code) && (during !== 'commit' || translated.code === 'producer.fenced'))
      return translated
    return new HooktideError(
      'producer.failed',
      `Transaction of ${this.#id} has an unknown outcome: ${messageOf(translated)}`,
      { cause: error },
    )
  }

  #deadlineMs(): number {
    return this.#client.deps.clock.mono() + this.#client.deadlineMs
  }
}

/**
 * These say more than "unknown outcome", and before the commit is asked for it can't have happened. `producer.fenced`
 * goes up from there as well: whoever it comes to is no owner any more, and the next one reads what became of it.
 */
const passedOn: ReadonlySet<string> = new Set([
  'producer.fenced',
  'topic.missing',
  'broker.unauthorized',
  'broker.unauthenticated',
  'broker.incompatible',
])

/** Waits for both, then throws the first error: nothing of a transaction may still be on the way when it is ended. */
async function both(a: Promise<void> | null, b: Promise<void> | null): Promise<void> {
  const results = await Promise.allSettled([a, b])
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

function groupByTopic<T extends { topic: string }>(list: readonly T[]): { topic: string; partitions: T[] }[] {
  return [...Map.groupBy(list, (entry) => entry.topic)].map(([topic, partitions]) => ({ topic, partitions }))
}

const notAttemptedCode = 55

interface AddPartitionsResponse {
  readonly errors: readonly { topic: string; partitionErrors: readonly { partition: number; errorCode: number }[] }[]
}
