import type { GroupOffset, OutRecord } from '../../src/core/record.ts'
import type { FakeClock } from './fake-clock.ts'
import type { PartitionLog, TxnPart } from './partition-log.ts'
import { ProtocolError } from './protocol.ts'

/** Where a transaction's offsets go when its marker reaches the group's partition. */
export interface OffsetStore {
  apply(offsets: readonly GroupOffset[]): void
}

interface TxnId {
  epoch: number
  state: 'empty' | 'ongoing' | 'committing' | 'aborting'
  parts: Map<PartitionLog, TxnPart>
  offsets: Map<OffsetStore, GroupOffset[]>
  cancelTimeout: () => void
  idle: (() => void)[]
}

export interface TransactionsOptions {
  readonly timeoutMs: number
  /** How long one marker takes to its partition after the decision. */
  markerMs(): number
}

/**
 * The transaction coordinator, with what matters of KIP-98: epochs fence; InitProducerId aborts what is pending and waits for
 * what is decided; a decision is durable before its markers are written, so for a while after a successful commit its records
 * and offsets may still be invisible. As kafkajs speaks it (TxnOffsetCommit v1) no group generation is checked.
 */
export class Transactions {
  readonly #clock: FakeClock
  readonly #options: TransactionsOptions
  readonly #ids = new Map<string, TxnId>()

  constructor(clock: FakeClock, options: TransactionsOptions) {
    this.#clock = clock
    this.#options = options
  }

  /** Resolves with the new epoch when nothing of older epochs is pending any more. */
  async init(id: string): Promise<number> {
    const txn = this.#of(id)
    const mine = ++txn.epoch
    if (txn.state === 'ongoing') this.#decide(txn, false)
    await this.#idle(txn)
    if (txn.epoch !== mine) throw new ProtocolError('fenced')
    return mine
  }

  async append(
    id: string,
    epoch: number,
    log: PartitionLog,
    records: readonly OutRecord[],
    stamp: () => number,
  ): Promise<number> {
    const txn = await this.#open(id, epoch)
    let part = txn.parts.get(log)
    if (part === undefined) {
      part = { state: 'open', firstOffset: -1 }
      txn.parts.set(log, part)
    }
    return log.append(records, part, stamp(), this.#clock.mono())
  }

  async addOffsets(id: string, epoch: number, store: OffsetStore, offsets: readonly GroupOffset[]): Promise<void> {
    const txn = await this.#open(id, epoch)
    txn.offsets.set(store, [...(txn.offsets.get(store) ?? []), ...offsets])
  }

  end(id: string, epoch: number, commit: boolean): void {
    const txn = this.#of(id)
    if (txn.epoch !== epoch) throw new ProtocolError('fenced')
    if (txn.state !== 'ongoing') throw new ProtocolError('invalid-transaction')
    this.#decide(txn, commit)
  }

  /** What a takeover or a transaction time-out does to the owner of `epoch`. */
  fence(id: string): void {
    const txn = this.#of(id)
    txn.epoch++
    if (txn.state === 'ongoing') this.#decide(txn, false)
  }

  async #open(id: string, epoch: number): Promise<TxnId> {
    const txn = this.#of(id)
    // CONCURRENT_TRANSACTIONS: the client repeats until the markers of its last transaction are written.
    if (txn.state !== 'ongoing') await this.#idle(txn)
    if (txn.epoch !== epoch) throw new ProtocolError('fenced')
    if (txn.state === 'empty') {
      txn.state = 'ongoing'
      txn.cancelTimeout = this.#clock.after(this.#options.timeoutMs, () => this.fence(id))
    }
    return txn
  }

  #decide(txn: TxnId, commit: boolean): void {
    txn.cancelTimeout()
    txn.state = commit ? 'committing' : 'aborting'
    let left = txn.parts.size + txn.offsets.size
    const done = () => {
      if (--left > 0) return
      txn.state = 'empty'
      txn.parts = new Map()
      txn.offsets = new Map()
      for (const go of txn.idle.splice(0)) go()
    }
    for (const [log, part] of txn.parts) {
      this.#clock.after(this.#options.markerMs(), () => {
        log.decide(part, commit, this.#clock.mono())
        done()
      })
    }
    for (const [store, offsets] of txn.offsets) {
      this.#clock.after(this.#options.markerMs(), () => {
        if (commit) store.apply(offsets)
        done()
      })
    }
  }

  async #idle(txn: TxnId): Promise<void> {
    while (txn.state === 'committing' || txn.state === 'aborting') {
      await new Promise<void>((resolve) => txn.idle.push(resolve))
    }
  }

  #of(id: string): TxnId {
    let txn = this.#ids.get(id)
    if (txn === undefined) {
      txn = { epoch: 0, state: 'empty', parts: new Map(), offsets: new Map(), cancelTimeout: () => {}, idle: [] }
      this.#ids.set(id, txn)
    }
    return txn
  }
}
