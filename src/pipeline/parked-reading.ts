import type { LineState } from '../core/lane-state.ts'
import type { Line } from '../core/line.ts'
import type { FetchedBatch } from '../core/record.ts'
import type { LineStore } from './line-store.ts'
import type { LinesHost } from './lines-host.ts'
import type { Work } from './work.ts'

export interface ReadAhead {
  /** Parked records that each line may have read ahead. */
  readonly maxBuffer: number
  /** And all of a lane's together, when some need less. */
  readonly maxBuffered: number
}

/** Which parked records the draining lines need, and how far each line is with them. */
export class ParkedReading {
  readonly #lines: LineStore
  readonly #host: LinesHost
  readonly #limits: ReadAhead

  constructor(lines: LineStore, host: LinesHost, limits: ReadAhead) {
    this.#lines = lines
    this.#host = host
    this.#limits = limits
  }

  /** Offset from which `parked` must be read for the lines that drain; null: nobody needs anything. */
  wanted(): number | null {
    let from: number | null = null
    const spare = this.#spare()
    for (const line of this.#lines) {
      if (!this.#wants(line, spare)) continue
      if (from === null || line.readNext < from) from = line.readNext
    }
    return from
  }

  /**
   * A batch of `parked`, read from `from`. Lines that are not at this place of the log take nothing from it. `end`: all
   * parked records that the states count lie below it; null: not known now, moves are under way. Returns whom it concerns.
   */
  take(from: number, batch: FetchedBatch, end: number | null): ReadonlySet<Line<Work>> {
    const touched = new Set<Line<Work>>()
    const full = new Set<Line<Work>>()
    for (const line of this.#lines) {
      if (line.state !== null && line.readNext >= from && line.readNext < batch.nextOffset) touched.add(line)
    }
    let spare = this.#spare()
    for (const record of batch.records) {
      const key = this.#host.lineOf(record)
      const line = key === null ? undefined : this.#lines.get(key)
      if (line === undefined || !touched.has(line) || full.has(line) || record.offset < line.readNext) continue
      if (line.doneAbove.has(record.offset)) continue
      if (line.buffer.length >= this.#room(line, spare)) {
        full.add(line)
        line.readNext = record.offset
        continue
      }
      const work = this.#host.fromParked(record, line)
      if (work === null) {
        this.#skip(line, record.offset)
        continue
      }
      work.line = line
      line.buffer.push(work)
      spare--
      line.readNext = record.offset + 1
    }
    for (const line of touched) if (!full.has(line)) line.readNext = Math.max(line.readNext, batch.nextOffset)
    if (end !== null) for (const line of this.#lines) if (this.#checkLost(line, end)) touched.add(line)
    return touched
  }

  /** How many more may be read ahead than each line may have anyhow. */
  #spare(): number {
    let spare = this.#limits.maxBuffered
    for (const line of this.#lines) spare -= line.buffer.length
    return spare
  }

  /** How many records may be read ahead for the line. */
  #room(line: Line<Work>, spare: number): number {
    // Behind one that hangs, an unordered line would note ever more that is done.
    if (line.doneAbove.size >= maxDoneAbove) return line.open.size === 0 ? 1 : 0
    // A long line alone takes what others leave: with a few records at a time the same batch is read again and again.
    return this.#host.tight() ? 1 : Math.max(this.#limits.maxBuffer, line.buffer.length + spare)
  }

  #wants(line: Line<Work>, spare: number): boolean {
    const { state } = line
    if (state === null || state.state !== 'draining' || !this.#host.runs(line, null)) return false
    let openParked = 0
    for (const work of line.open) if (work.source === 'parked') openParked++
    return line.buffer.length * 2 < this.#room(line, spare) && state.count > line.buffer.length + openParked
  }

  #skip(line: Line<Work>, offset: number): void {
    if (line.state === null) return
    line.readNext = offset + 1
    this.#lines.write(line, { ...line.state, count: Math.max(0, line.state.count - 1) })
  }

  /** The log was read to its end and holds fewer of the line than its state counts: retention took them. */
  #checkLost(line: Line<Work>, end: number): boolean {
    const { state } = line
    if (state === null || state.state !== 'draining' || line.readNext < end) return false
    let known = line.buffer.length
    for (const work of line.open) if (work.source === 'parked') known++
    if (state.count <= known) return false
    this.#host.lost(line, state.count - known)
    this.#lines.write(line, { ...state, count: known })
    return true
  }
}

/** What a line's state may have to list. */
const maxDoneAbove = 512

/** The line's state when one of its parked records is done. */
export function parkedDone(line: Line<Work>, state: LineState, offset: number): LineState {
  const count = Math.max(0, state.count - 1)
  if (line.ordered) return { ...state, next: offset + 1, count }
  line.doneAbove.add(offset)
  // The lowest offset of the line that is not done: what is open, buffered or still to be read.
  let low = line.readNext
  for (const work of line.open) if (work.source === 'parked') low = Math.min(low, work.offset)
  for (const work of line.buffer) low = Math.min(low, work.offset)
  for (const done of line.doneAbove) if (done < low) line.doneAbove.delete(done)
  const { bitmap: _, ...rest } = state
  return { ...rest, next: low, count, ...encodeDone(low, line.doneAbove) }
}

function encodeDone(next: number, done: ReadonlySet<number>): { bitmap?: string } {
  if (done.size === 0) return {}
  const list = [...done].map((offset) => offset - next).sort((a, b) => a - b)
  return { bitmap: Buffer.from(list.join(',')).toString('base64') }
}

/** Parked offsets of an unordered line that are done above `next`. */
export function decodeDone(state: LineState): number[] {
  if (state.bitmap === undefined) return []
  return Buffer.from(state.bitmap, 'base64')
    .toString()
    .split(',')
    .map((part) => state.next + Number(part))
    .filter(Number.isSafeInteger)
}
