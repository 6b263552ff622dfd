import type { LineState } from '../core/lane-state.ts'
import { Line } from '../core/line.ts'
import type { Work } from './work.ts'

/** The lines of a lane that are not simply open, and their states: written down by every change. */
export class LineStore {
  readonly #lines = new Map<string, Line<Work>>()
  readonly #writeState: (line: Line<Work>, state: LineState | null) => void

  constructor(writeState: (line: Line<Work>, state: LineState | null) => void) {
    this.#writeState = writeState
  }

  get size(): number {
    return this.#lines.size
  }

  [Symbol.iterator](): Iterator<Line<Work>> {
    return this.#lines.values()
  }

  get(key: string): Line<Work> | undefined {
    return this.#lines.get(key)
  }

  /** The line, made when there is none. */
  line(key: string): Line<Work> {
    let line = this.#lines.get(key)
    if (line === undefined) {
      line = new Line<Work>(key)
      this.#lines.set(key, line)
    }
    return line
  }

  write(line: Line<Work>, state: LineState | null): void {
    line.state = state
    this.#writeState(line, state)
  }

  forgetIdle(line: Line<Work>): void {
    if (line.idle && this.#lines.get(line.key) === line) this.#lines.delete(line.key)
  }
}
