/**
 * Commit metadata of a router: the generation its stream is in. A committed offset without it was set by somebody else
 * (first start, or an operator who resets the group to send again): then a new, higher generation starts, so that
 * nothing is taken for a repeat that is not one.
 */
export function encodeRouterMetadata(generation: number): string {
  return `hr1:${generation}`
}

export function decodeRouterMetadata(metadata: string): number | null {
  const match = /^hr1:([0-9]{1,16})$/.exec(metadata)
  if (match === null) return null
  const generation = Number(match[1])
  return Number.isSafeInteger(generation) ? generation : null
}

export interface RouterStart {
  readonly offset: number
  readonly generation: number
  /** A new generation began, and why; null: it goes on where it was. */
  readonly fresh: 'first-start' | 'reset' | 'recreated' | 'retention' | null
}

/**
 * Where a router begins on a partition. `highestSeen`: highest generation any lane has seen of the stream, or null.
 * A new generation is above everything seen and, by the clock, above what was written but not seen yet.
 */
export function routerStart(input: {
  readonly committed: number | null
  readonly metadata: string
  readonly logStart: number
  readonly logEnd: number
  readonly highestSeen: number | null
  readonly nowMs: number
}): RouterStart {
  const known = decodeRouterMetadata(input.metadata)
  const next = Math.max(Math.floor(input.nowMs), (input.highestSeen ?? 0) + 1, (known ?? 0) + 1)
  if (input.committed === null) return { offset: input.logStart, generation: next, fresh: 'first-start' }
  if (input.committed > input.logEnd) return { offset: input.logStart, generation: next, fresh: 'recreated' }
  const offset = Math.max(input.committed, input.logStart)
  if (known === null) return { offset, generation: next, fresh: 'reset' }
  return { offset, generation: known, fresh: input.committed < input.logStart ? 'retention' : null }
}
