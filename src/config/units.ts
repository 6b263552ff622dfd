const durationUnits = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const sizeUnits = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, kB: 1000, MB: 1e6, GB: 1e9 } as const

/** `250ms`, `1.5s`, `5m`, `2h`, `1h30m` → whole ms; null when it is none. `0` needs no unit, everything else does. */
export function parseDuration(text: string): number | null {
  if (text.trim() === '0') return 0
  const parts = [...text.trim().matchAll(/(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*/gy)]
  if (parts.length === 0 || parts.reduce((n, part) => n + part[0].length, 0) !== text.trim().length) return null
  const ms = parts.reduce((sum, [, n, unit]) => sum + Number(n) * durationUnits[unit as keyof typeof durationUnits], 0)
  const whole = Math.round(ms)
  return Number.isSafeInteger(whole) && Math.abs(whole - ms) < 1e-6 ? whole : null
}

/** `256KiB`, `64 MiB`, `1MB`, `512` (bytes) → whole bytes; null when it is none. */
export function parseSize(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|kB|MB|GB)?$/.exec(text.trim())
  if (match === null) return null
  const bytes = Number(match[1]) * sizeUnits[(match[2] ?? 'B') as keyof typeof sizeUnits]
  return Number.isSafeInteger(bytes) ? bytes : null
}

export function formatDuration(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's'] as const)
    if (ms !== 0 && ms % durationUnits[unit] === 0) return `${ms / durationUnits[unit]}${unit}`
  return `${ms}ms`
}

export function formatSize(bytes: number): string {
  for (const unit of ['GiB', 'MiB', 'KiB'] as const)
    if (bytes !== 0 && bytes % sizeUnits[unit] === 0) return `${bytes / sizeUnits[unit]}${unit}`
  return `${bytes}B`
}
