/** A `traceparent` taken apart (W3C Trace Context, section 3.2). Ids in lower-case hex. */
export interface TraceContext {
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
}

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Null: it is none, or one that the specification calls invalid. Versions above 00 are read as 00, as it asks. */
export function parseTraceparent(text: string): TraceContext | null {
  const [, version, traceId, spanId, flags, rest] = form.exec(text) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined || version === 'ff') return null
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId) || (version === '00' && rest !== undefined)) return null
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function formatTraceparent({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`
}

/** `bytes` of chance as hex, never all zero. `random` in [0, 1). */
export function randomHex(bytes: number, random: () => number): string {
  let hex = ''
  for (let i = 0; i < bytes; i++)
    hex += Math.floor(random() * 256)
      .toString(16)
      .padStart(2, '0')
  return /^0+$/.test(hex) ? `${hex.slice(0, -1)}1` : hex
}
