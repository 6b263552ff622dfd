import { HooktideError } from '../../src/core/error.ts'
import type { OutRecord } from '../../src/core/record.ts'
import type { Appended, Transaction, TransactionalProducer } from '../../src/ports.ts'
import type { Link } from './link.ts'
import { byPartition, type MemoryCore, outBytes, portError } from './memory-core.ts'
import { ProtocolError } from './protocol.ts'
import { between } from './random.ts'

export class MemoryTransactional implements TransactionalProducer {
  readonly #core: MemoryCore
  readonly #link: Link
  readonly #id: string
  #epoch: number | null = null
  #state: 'ready' | 'busy' | 'dead' | 'closed' = 'ready'

  constructor(core: MemoryCore, link: Link, transactionalId: string) {
    this.#core = core
    this.#link = link
    this.#id = transactionalId
  }

  fence(): Promise<void> {
    return this.#exclusive(async () => {
      await this.#init()
    })
  }

  transact(transaction: Transaction): Promise<readonly Appended[]> {
    return this.#exclusive(() => this.#transact(transaction))
  }

  async close(): Promise<void> {
    this.#state = 'closed'
  }

  /** One call at a time; any rejection is the end of this producer. */
  async #exclusive<T>(work: () => Promise<T>): Promise<T> {
    if (this.#state === 'busy') throw new HooktideError('internal', `${this.#id}: a transaction is under way already`)
    if (this.#state !== 'ready') throw new HooktideError('producer.closed', `${this.#id}: producer is ${this.#state}`)
    this.#state = 'busy'
    try {
      const result = await work()
      if (this.#state === 'busy') this.#state = 'ready'
      return result
    } catch (error) {
      if (this.#state === 'busy') this.#state = 'dead'
      throw portError(error, 'producer.failed')
    }
  }

  async #init(): Promise<number> {
    this.#epoch = await this.#link.call(() => {
      this.#core.requireCoordinator()
      return this.#core.transactions.init(this.#id)
    })
    return this.#epoch
  }

  async #transact({ records, group, offsets }: Transaction): Promise<readonly Appended[]> {
    const { dice, transactions } = this.#core
    const processId = this.#link.process.id
    const epoch = this.#epoch ?? (await this.#init())
    if (records.length === 0 && offsets.length === 0) return []
    for (const record of records) {
      if (outBytes(record) > this.#core.settings.maxMessageBytes)
        throw new ProtocolError('too-large', 'record too large')
    }
    if (offsets.some(({ metadata }) => metadata.length > 4096)) {
      throw new ProtocolError('metadata-too-large', 'commit metadata above 4096 characters')
    }
    if (dice.hit('fenced', processId)) transactions.fence(this.#id)
    const appended: Appended[] = []
    try {
      for (const part of byPartition(records)) appended.push(await this.#link.call(() => this.#append(epoch, part)))
      if (offsets.length > 0) {
        await this.#link.call(() => {
          this.#core.requireCoordinator()
          return transactions.addOffsets(this.#id, epoch, this.#core.group(group), offsets)
        })
      }
    } catch (error) {
      // Best effort, as a client would: who can't abort leaves it to the next fence or the time-out.
      await this.#link.call(() => transactions.end(this.#id, epoch, false)).catch(() => {})
      throw error
    }
    const lost = dice.hit('lostCommit', processId)
    const ambiguous = dice.hit('ambiguousCommit', processId)
    const late = dice.hit('lateCommit', processId)
    await this.#link.call(() => {
      this.#core.requireCoordinator()
      if (late) {
        this.#core.clock.after(between(dice.stream('late commit'), 1, this.#core.settings.requestTimeoutMs), () => {
          try {
            transactions.end(this.#id, epoch, true)
          } catch {
            // Too late: fenced or timed out, nobody is there to be told.
          }
        })
        throw new ProtocolError('network', 'no answer to the commit; it is still on its way')
      }
      transactions.end(this.#id, epoch, !lost)
      if (lost) throw new ProtocolError('network', 'the transaction was aborted')
      if (ambiguous) throw new ProtocolError('network', 'the answer to the commit was lost')
    })
    return appended
  }

  async #append(epoch: number, part: readonly OutRecord[]): Promise<Appended> {
    const first = part[0] as OutRecord
    const log = this.#core.log(first.topic, first.partition)
    this.#core.requireLeader(log)
    let appendTimeMs: number | null = null
    // Stamped when it is appended, which may be later than it came: the last transaction's markers go first.
    const firstOffset = await this.#core.transactions.append(this.#id, epoch, log, part, () => {
      const stamp = this.#core.stamp(first.topic, this.#link.process)
      appendTimeMs = stamp.appendTimeMs
      return stamp.timestampMs
    })
    return { topic: first.topic, partition: first.partition, firstOffset, count: part.length, appendTimeMs }
  }
}
