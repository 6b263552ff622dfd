/**
 * How what is done above a committed offset is written. `h1:` a base64 bitset, short and of a known greatest length;
 * `h2:` runs (LEB128 lengths of not done, done, not done … in base64), for wide spans with long runs. Versions before
 * `h2:` take it for foreign and repeat what is above the offset.
 */
const bitsPrefix = 'h1:'
const runsPrefix = 'h2:'

export function isBits(text: string): boolean {
  return text.startsWith(bitsPrefix)
}

export function encodeBits(span: number, isDone: (i: number) => boolean): string {
  const bytes = Buffer.alloc(Math.ceil(span / 8))
  for (let i = 0; i < span; i++) {
    if (isDone(i)) bytes[i >> 3] = (bytes[i >> 3] as number) | (1 << (i & 7))
  }
  return bitsPrefix + bytes.toString('base64')
}

/** Calls `mark` for what is done, ascending. False, and nothing is marked, when the text is not what it should be. */
export function decodeBits(text: string, maxSpan: number, mark: (from: number, to: number) => void): boolean {
  const bytes = base64(text.slice(bitsPrefix.length))
  if (bytes === null || bytes.length * 8 > maxSpan) return false
  for (let i = 0; i < bytes.length * 8; i++) {
    if (((bytes[i >> 3] as number) >> (i & 7)) & 1) mark(i, i + 1)
  }
  return true
}

/** `runs`: lengths of not done, done, by turns; the last is of what is done. */
export function encodeRuns(runs: Iterable<number>): string {
  const bytes: number[] = []
  for (let run of runs) {
    for (; run >= 0x80; run = Math.floor(run / 0x80)) bytes.push((run & 0x7f) | 0x80)
    bytes.push(run)
  }
  return runsPrefix + Buffer.from(bytes).toString('base64')
}

export function decodeRuns(text: string, maxSpan: number, mark: (from: number, to: number) => void): boolean {
  if (!text.startsWith(runsPrefix)) return false
  const bytes = base64(text.slice(runsPrefix.length))
  const runs = bytes === null ? null : readRuns(bytes)
  if (runs === null || runs.reduce((sum, run) => sum + run, 0) > maxSpan) return false
  let at = 0
  for (const [i, run] of runs.entries()) {
    if (i % 2 === 1) mark(at, at + run)
    at += run
  }
  return true
}

function readRuns(bytes: Buffer): number[] | null {
  const runs: number[] = []
  let run = 0
  let unit = 1
  for (const byte of bytes) {
    run += (byte & 0x7f) * unit
    if (!Number.isSafeInteger(run)) return null
    if (byte >= 0x80) unit *= 0x80
    else {
      if (run === 0 && runs.length > 0) return null
      runs.push(run)
      run = 0
      unit = 1
    }
  }
  return unit === 1 ? runs : null
}

function base64(text: string): Buffer | null {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null
  return Buffer.from(text, 'base64')
}
