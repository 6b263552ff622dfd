import type { Clock } from '../ports.ts'
import type { LogStream } from './observer.ts'

/**
 * Collects log lines for a moment and writes them in one go: a write per line is a system call per delivery. Call
 * `flush` before the process ends. Terminals get each line at once.
 */
export class LineBuffer implements LogStream {
  readonly isTTY: boolean | undefined
  readonly #stream: LogStream
  readonly #clock: Clock
  #lines: string[] = []
  #chars = 0
  #cancel: (() => void) | null = null

  constructor(stream: LogStream, clock: Clock) {
    this.#stream = stream
    this.#clock = clock
    this.isTTY = stream.isTTY
  }

  on(event: 'error', listener: (error: Error) => void): unknown {
    return this.#stream.on?.(event, listener)
  }

  write(line: string): void {
    this.#lines.push(line)
    this.#chars += line.length
    if (this.isTTY === true || this.#chars >= maxChars) this.flush()
    else this.#cancel ??= this.#clock.after(flushMs, () => this.flush())
  }

  flush(): void {
    this.#cancel?.()
    this.#cancel = null
    if (this.#lines.length === 0) return
    const text = this.#lines.join('')
    this.#lines = []
    this.#chars = 0
    this.#stream.write(text)
  }
}

const flushMs = 100
const maxChars = 64 * 1024
