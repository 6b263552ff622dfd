import type { Output } from '../cli/deps.ts'

interface Terminal {
  write(data: string | Buffer): unknown
  readonly isTTY?: boolean
  readonly columns?: number
  on(event: 'error', listener: (error: Error) => void): unknown
}

/** A stream of the process as commands see it. A reader that goes away (`| head`) is no error of ours. */
export function processOutput(stream: Terminal): Output {
  stream.on('error', () => undefined)
  return {
    write: (data) => void stream.write(data),
    get isTTY() {
      return stream.isTTY === true
    },
    get columns() {
      // A terminal of unknown size says 0.
      return stream.columns || 100
    },
  }
}
