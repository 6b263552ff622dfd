const durations: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const sizes: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }

/**
 * A value of a topic file as the broker takes it: settings ending in `.ms` may be written as `7d`, those in `.bytes` as
 * `1MiB`. In a tier's file `.ms` may also be `3 * delay + 3d`. Null: it can't be read.
 */
export function topicValue(key: string, written: unknown, delayMs: number | null): string | null {
  if (typeof written === 'boolean') return String(written)
  if (typeof written === 'number') return Number.isFinite(written) ? String(written) : null
  if (typeof written !== 'string' || written.trim() === '') return null
  const text = written.trim()
  if (/^-?\d+$/.test(text)) return text
  if (key.endsWith('.ms')) return numberText(delayMs === null ? amount(text, durations) : byDelay(text, delayMs))
  if (key.endsWith('.bytes')) return numberText(amount(text, sizes))
  return text
}

function byDelay(text: string, delayMs: number): number | null {
  const match = /^(\d+)\s*\*\s*delay(?:\s*\+\s*(\S+))?$/.exec(text)
  if (match === null) return amount(text, durations)
  const rest = match[2] === undefined ? 0 : amount(match[2], durations)
  return rest === null ? null : Number(match[1]) * delayMs + rest
}

function amount(text: string, units: Readonly<Record<string, number>>): number | null {
  const match = /^(\d+)\s*([A-Za-z]+)$/.exec(text)
  const unit = units[match?.[2] ?? '']
  return unit === undefined ? null : Number(match?.[1]) * unit
}

function numberText(n: number | null): string | null {
  return n === null || !Number.isSafeInteger(n) ? null : String(n)
}
