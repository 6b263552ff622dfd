import type { LineState } from '../core/lane-state.ts'
import type { Line } from '../core/line.ts'
import type { FetchedBatch } from '../core/record.ts'
import { LineStore } from './line-store.ts'
import type { LinesHost } from './lines-host.ts'
import { decodeDone, ParkedReading, parkedDone, type ReadAhead } from './parked-reading.ts'
import type { Work } from './work.ts'

export interface LinesOptions extends ReadAhead {
  /** Arrivals kept in memory behind the last parked record, per line: how a line gets back to open. */
  readonly maxHeld: number
  /** Parked records of an unordered line open at once. */
  readonly maxOpenUnordered: number
}

/** Order through retries, and overflow. The rule of `since`, in `arrive` and in `#queue`, only looks optional: either half gone breaks the order after a crash. */
export class Lines {
  readonly #lines: LineStore
  readonly #parked: ParkedReading
  /** Lines of the gain whose `since` the reader of `deliveries` has not passed yet. */
  readonly #awaited = new Set<Line<Work>>()
  readonly #host: LinesHost
  readonly #options: LinesOptions

  constructor(host: LinesHost, options: LinesOptions, states: Iterable<LineState>) {
    this.#host = host
    this.#options = options
    this.#lines = new LineStore((line, state) => host.writeState(line, state))
    this.#parked = new ParkedReading(this.#lines, host, options)
    for (const state of states) {
      const line = this.#lines.line(state.line)
      line.state = state
      line.readNext = state.next
      for (const offset of decodeDone(state)) line.doneAbove.add(offset)
      if (line.ordered) this.#awaited.add(line)
    }
  }

  get size(): number {
    return this.#lines.size
  }

  [Symbol.iterator](): Iterator<Line<Work>> {
    return this.#lines[Symbol.iterator]()
  }

  get(key: string): Line<Work> | undefined {
    return this.#lines.get(key)
  }

  /** A record of an ordered line, new in `deliveries`, in log order. `crowded`: the lane has no room for it to wait in memory. */
  arrive(key: string, work: Work, crowded: boolean): void {
    const line = this.#lines.line(key)
    work.line = line
    if (line.state?.state === 'stopped' && line.state.head === work.delivery.id && line.head === null) {
      // The dead head was redriven: it comes back as head.
      line.head = work
      this.pump(line)
      return
    }
    // A record below `since` was open when the lane was lost: it goes before the parked ones.
    if (line.state === null || work.offset < line.state.since) {
      line.front.push(work)
      if (line.state === null && line.ordered && (crowded || !this.#host.runs(line, work)))
        this.#parkAll(line, line.front)
    } else {
      line.held.push(work)
      if (crowded || line.held.length > this.#options.maxHeld || line.state.count > this.#options.maxHeld)
        this.#parkAll(line, line.held)
    }
    this.pump(line)
  }

  /** The reader of `deliveries` has gone on: lines that only waited for it to pass their `since` go on too. */
  passed(): void {
    for (const line of this.#awaited) {
      if (line.state !== null && line.state.since > this.#host.deliveriesNext(line)) continue
      this.#awaited.delete(line)
      if (this.#lines.get(line.key) === line) this.pump(line)
    }
  }

  /** An unordered work that has to wait elsewhere than in memory. */
  overflow(key: string, work: Work): void {
    const line = this.#lines.line(key)
    work.line = line
    this.#park(line, [work])
  }

  /** The head of a line is back from its tier. False: the line does not wait for it, treat it as unordered. */
  ripe(key: string, work: Work): boolean {
    const line = this.#lines.get(key)
    // Also false for one that an operator let its line go on without: were it taken for the head, it would release a
    // line that stands behind another by now.
    if (line === undefined || line.state === null || line.head !== null || !line.ordered) return false
    if (line.state.head !== work.delivery.id) return false
    for (const open of line.open) if (open.source === 'tier') return false
    work.line = line
    line.head = work
    this.pump(line)
    return true
  }

  /** The head of a line stands in a tier, not ripe yet. */
  waits(key: string): void {
    const line = this.#lines.get(key)
    if (line !== undefined) line.headKnown = true
  }

  /** Starts what may start. */
  pump(line: Line<Work>): void {
    const limit = line.ordered ? 1 : this.#options.maxOpenUnordered
    while (line.open.size < limit) {
      const work = this.#next(line)
      if (work === null) break
      line.open.add(work)
      work.readyAtMs = this.#host.nowMs()
      this.#host.offer(work)
    }
    if (
      line.state !== null &&
      line.state.count === 0 &&
      line.state.state === 'draining' &&
      line.open.size === 0 &&
      line.head === null
    ) {
      this.#reopen(line)
      if (line.front.length > 0) this.pump(line)
    }
    // Paused, or its circuit open: what waits in memory would hold back the watermark for as long.
    if (line.open.size === 0 && line.front.length + line.held.length > 0 && !this.#host.runs(line, null))
      this.relieve(line)
    this.#lines.forgetIdle(line)
  }

  /**
   * An open work of the line is settled; the lane has written its move, if any, and marked deliveries and tier sources.
   * `retry`: it went to a tier and is the line's head now; `stop`: it died and an operator decides how the line goes on.
   */
  settled(work: Work, end: 'final' | 'retry' | 'stop'): void {
    const line = work.line as Line<Work>
    line.open.delete(work)
    let state = line.state
    if (work.source === 'parked' && state !== null) state = parkedDone(line, state, work.offset)
    if (!line.ordered) {
      if (state !== line.state && state !== null) this.#lines.write(line, state)
    } else if (end !== 'final') {
      const since =
        work.source === 'deliveries' && state === null
          ? work.offset + 1
          : (state?.since ?? this.#host.deliveriesNext(line))
      state ??= this.#fresh(line, since)
      line.headKnown = true
      const { id: head, eventTimeMs: headTimeMs } = work.delivery
      // An operator's release is about the time before it: each new stand counts anew.
      const sinceMs = end === 'retry' && state.head === head ? state.sinceMs : this.#host.nowMs()
      const stand =
        end === 'retry' ? { state: 'blocked' as const } : { state: 'stopped' as const, reason: 'head is dead' }
      this.#lines.write(line, { ...state, ...stand, head, headTimeMs, sinceMs })
      // What waited behind it in memory stands behind the head now.
      line.held.unshift(...line.front.splice(0))
      if (line.held.length > this.#options.maxHeld) this.#parkAll(line, line.held)
    } else if (state !== null) {
      if (work.source === 'tier' || work.delivery.id === state.head) state = drained(state)
      if (state.count === 0 && state.state === 'draining') {
        line.state = state
        this.#reopen(line)
      } else if (state !== line.state) this.#lines.write(line, state)
    }
    this.pump(line)
  }

  /** It goes on without its head. False: there is no such line, or it goes on already. */
  release(key: string): boolean {
    const line = this.#lines.get(key)
    if (line === undefined || line.state === null || line.state.state === 'draining') return false
    this.#lines.write(line, drained(line.state))
    this.pump(line)
    return true
  }

  /** An open work was not started after all, or interrupted: it goes back to where it stood. */
  putBack(work: Work): void {
    const line = work.line as Line<Work>
    line.open.delete(work)
    if (work.source === 'tier' || work.delivery.id === line.state?.head) line.head = work
    else if (work.source === 'parked') line.buffer.unshift(work)
    else if (line.state === null || work.offset < line.state.since) line.front.unshift(work)
    else line.held.unshift(work)
  }

  /** Makes room: what waits in memory of a line is parked. The head of an ordered line never is. */
  relieve(line: Line<Work>): void {
    if (line.state === null) {
      if (line.front.length > 0) this.#parkAll(line, line.front)
    } else if (line.held.length > 0) this.#parkAll(line, line.held)
  }

  /** Offset from which `parked` must be read for the lines that drain; null: nobody needs anything. */
  wanted(): number | null {
    return this.#parked.wanted()
  }

  /** A batch of `parked`, read from `from`; see `ParkedReading.take`. */
  onParked(from: number, batch: FetchedBatch, end: number | null): void {
    for (const line of this.#parked.take(from, batch, end)) this.pump(line)
  }

  #next(line: Line<Work>): Work | null {
    const { head } = line
    const queue = head === null ? this.#queue(line) : null
    const work = head ?? queue?.[0] ?? null
    if (work === null || !this.#host.runs(line, work)) return null
    if (queue === null) line.head = null
    else queue.shift()
    return work
  }

  /** Where the line's next work stands, its head apart. */
  #queue(line: Line<Work>): Work[] | null {
    if (line.state !== null && line.state.state !== 'draining') return null
    if (line.front.length > 0) return line.front
    if (line.state !== null && line.state.count > 0) {
      // An undone record below `since` may still be on its way to us: it comes first.
      if (line.ordered && this.#host.deliveriesNext(line) < line.state.since) return null
      return line.buffer
    }
    return line.held
  }

  #parkAll(line: Line<Work>, queue: Work[]): void {
    this.#park(line, queue.splice(0))
  }

  #park(line: Line<Work>, works: readonly Work[]): void {
    const first = works[0]
    if (first === undefined) return
    let state =
      line.state ?? this.#fresh(line, first.source === 'deliveries' ? first.offset : this.#host.deliveriesNext(line))
    if (state.count === 0) {
      line.readNext = this.#host.parkedEnd()
      line.doneAbove.clear()
      state = { ...state, next: line.readNext }
    }
    for (const work of works) this.#host.park(line, work)
    this.#lines.write(line, { ...state, count: state.count + works.length })
  }

  #fresh(line: Line<Work>, since: number): LineState {
    line.readNext = this.#host.parkedEnd()
    return {
      v: 1,
      kind: 'line',
      line: line.key,
      state: 'draining',
      head: null,
      next: line.readNext,
      count: 0,
      since,
      sinceMs: this.#host.nowMs(),
    }
  }

  #reopen(line: Line<Work>): void {
    line.front.push(...line.held.splice(0))
    line.doneAbove.clear()
    this.#lines.write(line, null)
  }
}

function drained(state: LineState): LineState {
  const { reason: _, headTimeMs: __, ...rest } = state
  return { ...rest, state: 'draining', head: null }
}
