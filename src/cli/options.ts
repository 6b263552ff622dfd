import { InvalidArgumentError } from 'commander'
import { parseDuration } from '../config/units.ts'

/** Parsers of option values for commander: they throw with what to write instead. */

export function countArgument(least: number, most: number): (text: string) => number {
  return (text) => {
    const n = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (n >= least && n <= most) return n
    throw new InvalidArgumentError(`Write a whole number from ${least} to ${most}.`)
  }
}

export function rateArgument(text: string): number {
  const n = /^[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : Number.NaN
  if (n > 0 && n <= 1e6) return n
  throw new InvalidArgumentError('Write how many per second, above 0.')
}

export function durationArgument(text: string): number {
  const ms = parseDuration(text)
  if (ms !== null) return ms
  throw new InvalidArgumentError('Write a number with its unit, e.g. 250ms, 10s, 5m, 2h, 7d.')
}

/** A point in time: how long ago (`2h`) or an ISO date. `nowMs` is asked when the option is read. */
export function sinceArgument(nowMs: () => number): (text: string) => number {
  return (text) => {
    const agoMs = parseDuration(text)
    if (agoMs !== null) return nowMs() - agoMs
    const atMs = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN
    if (!Number.isNaN(atMs)) return atMs
    throw new InvalidArgumentError('Write how long ago (30m, 2h, 7d) or a date (2026-05-01T10:00:00Z).')
  }
}

/** Comma-separated words of a repeatable option. */
export function wordsArgument(text: string, before: readonly string[] | undefined): readonly string[] {
  const words = text.split(',').map((word) => word.trim())
  if (words.some((word) => word === '')) throw new InvalidArgumentError('Write words with commas between them.')
  return [...(before ?? []), ...words]
}

export function listArgument(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), text]
}
