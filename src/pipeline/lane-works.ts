import { decodeDelivery } from '../core/delivery.ts'
import type { Line } from '../core/line.ts'
import { type InRecord, ownedRecord, recordBytes } from '../core/record.ts'
import type { Crowd } from './crowd.ts'
import type { LaneFlow } from './lane-flow.ts'
import type { LaneWorld } from './lane-world.ts'
import type { Ledger } from './ledger.ts'
import type { Work, WorkOwner } from './work.ts'

/** How works of a lane come into memory and leave it; keeps its counts of records, bytes and subscriptions. */
export class LaneWorks {
  readonly crowd: Crowd
  readonly #world: LaneWorld
  readonly #owner: WorkOwner
  readonly #ledger: Ledger
  readonly #flow: LaneFlow

  constructor(world: LaneWorld, owner: WorkOwner, ledger: Ledger, flow: LaneFlow, crowd: Crowd) {
    this.#world = world
    this.#owner = owner
    this.#ledger = ledger
    this.#flow = flow
    this.crowd = crowd
  }

  /** A work for a record, or why there can be none. `tier`: index, −1 for other sources. */
  read(source: Work['source'], tier: number, record: InRecord, line: Line<Work> | null): Work | string {
    // Endpoints that take their time are enough: a few hundred works that wait would keep a hundred megabytes of responses.
    const kept = ownedRecord(record)
    // No transaction could hold it with what a move adds: it would fail for ever, and everybody's with it.
    const bytes = recordBytes(record)
    if (bytes > movableBytes) return `a record of ${bytes} bytes, more than the ${movableBytes} that can be moved`
    const decoded = decodeDelivery({ value: kept.value, headers: record.headers })
    if (!decoded.ok) return decoded.reason
    return {
      delivery: decoded.value,
      record: kept,
      source,
      tier,
      offset: record.offset,
      bytes: bytes + workBytes,
      owner: this.#owner,
      readyAtMs: this.#world.clock.now(),
      line,
    }
  }

  admitted(work: Work): void {
    this.#flow.added(sourceIndex(work), work.bytes)
  }

  get tight(): boolean {
    return this.#flow.tight
  }

  /** It counts as its subscription's from now on: tiers' works only when they are ripe. */
  entered(work: Work): void {
    this.crowd.entered(work.delivery.subscriptionId, this.#world.clock.now())
  }

  /** It leaves memory, and its source is done with the next commit; a parked one by its line's state. */
  released(work: Work): void {
    const index = sourceIndex(work)
    if (index === null) this.#ledger.doneParked()
    else this.#ledger.done(index, work.offset)
    this.#flow.removed(index, work.bytes)
  }

  /** It is not its subscription's any more, though not settled. */
  left(work: Work): void {
    this.crowd.left(work.delivery.subscriptionId, false, this.#world.clock.now())
  }

  settled(work: Work): void {
    this.released(work)
    const { subscriptionId } = work.delivery
    if (work.source === 'parked') this.crowd.parked(subscriptionId, -1)
    this.crowd.left(subscriptionId, true, this.#world.clock.now())
  }

  parked(work: Work): void {
    this.released(work)
    const { subscriptionId } = work.delivery
    this.crowd.parked(subscriptionId, 1)
    this.crowd.left(subscriptionId, false, this.#world.clock.now())
  }
}

/** Below `max.message.bytes` of the topics, with room for the headers of a move. */
const movableBytes = 1_000_000

/** What a work takes besides its record: objects, strings, places in queues. Measured: 3.6 KB for a body of 1 KB. */
const workBytes = 1_900

/** Index into the lane's sources; null: `parked`. */
function sourceIndex(work: Work): number | null {
  return work.source === 'parked' ? null : work.source === 'deliveries' ? 0 : work.tier + 1
}
