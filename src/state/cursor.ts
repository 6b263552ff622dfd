import { HooktideError } from '../core/error.ts'
import type { StatePage } from '../core/state-view.ts'

/** Where a page ended, as opaque text. The parts follow from the log, so a cursor stays good across rebuilds. */
export function encodeCursor(parts: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

/** Throws `usage` for text that is not ours, so that nobody gets a first page in its place. */
export function decodeCursor(text: string, types: readonly ('string' | 'number')[]): readonly (string | number)[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    if (Array.isArray(parts) && parts.length === types.length && types.every((type, i) => typeof parts[i] === type)) {
      return parts
    }
  } catch {
    // Told below.
  }
  throw new HooktideError('usage', `cursor (${text.slice(0, 40)}) is not one of ours`, {
    remedy: 'Pass nextCursor of the page before as it is, with the same filters, or none.',
  })
}

export function pageLimit({ limit }: StatePage): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= 1000) return limit
  throw new HooktideError('usage', `limit (${limit}) is not a number from 1 to 1000`, { remedy: 'Ask for 1 to 1000.' })
}
