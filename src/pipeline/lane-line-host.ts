import { lineHeader } from '../core/delivery.ts'
import type { LineState } from '../core/lane-state.ts'
import type { Line } from '../core/line.ts'
import type { InRecord } from '../core/record.ts'
import type { Bypass } from './bypass.ts'
import type { LaneGate } from './lane-gate.ts'
import { toParked } from './lane-records.ts'
import type { Settling } from './lane-settling.ts'
import type { LaneWorks } from './lane-works.ts'
import type { LaneWorld } from './lane-world.ts'
import type { Ledger } from './ledger.ts'
import type { LinesHost } from './lines-host.ts'
import type { Work } from './work.ts'

/** The lane as its lines see it. */
export class LaneLineHost implements LinesHost {
  readonly #world: LaneWorld
  readonly #partition: number
  readonly #ledger: Ledger
  readonly #bypass: Bypass
  readonly #gate: LaneGate
  readonly #works: LaneWorks
  readonly #settling: Settling

  constructor(
    world: LaneWorld,
    partition: number,
    parts: { ledger: Ledger; bypass: Bypass; gate: LaneGate; works: LaneWorks; settling: Settling },
  ) {
    this.#world = world
    this.#partition = partition
    this.#ledger = parts.ledger
    this.#bypass = parts.bypass
    this.#gate = parts.gate
    this.#works = parts.works
    this.#settling = parts.settling
  }

  offer(work: Work): void {
    this.#world.executor.offer(work)
  }

  park(line: Line<Work>, work: Work): void {
    this.#ledger.park(toParked(this.#world.topics.parked, this.#partition, line.key, work))
    this.#works.parked(work)
  }

  writeState(line: Line<Work>, state: LineState | null): void {
    this.#ledger.state(`line:${line.key}`, state)
  }

  deliveriesNext(line: Line<Work>): number {
    return this.#bypass.seenTo(line.subscriptionId)
  }

  parkedEnd(): number {
    return this.#ledger.parkedEnd
  }

  runs(line: Line<Work>, work: Work | null): boolean {
    return this.#gate.runs(line, work)
  }

  lineOf(record: InRecord): string | null {
    return record.headers[lineHeader]?.toString() ?? null
  }

  fromParked(record: InRecord, line: Line<Work>): Work | null {
    const work = this.#works.read('parked', -1, record, line)
    if (typeof work === 'string') {
      this.#settling.reject(this.#world.topics.parked, record, work)
      return null
    }
    this.#works.admitted(work)
    this.#works.entered(work)
    return work
  }

  tight(): boolean {
    return this.#works.tight
  }

  nowMs(): number {
    return Math.floor(this.#world.clock.now())
  }

  lost(line: Line<Work>, records: number): void {
    const remedy = 'raise the retention of the parked topic'
    this.#world.observer.log('error', 'parked.lost', { line: line.key, records, lane: this.#partition, remedy })
    this.#world.observer.count('parked_lost', records)
  }
}
