import type { TopicSpec, TopicState } from './topic-spec.ts'

/** What a delivery's record has besides the body, at most: its headers, all bounded by rules, and what a move adds. */
export const headerRoom = 32 * 1024

/** The largest request for one partition (KIP-98 batches are one record batch, whole or refused). */
const maxBatchBytes = 900 * 1024

const roles = new Set(['{events}', 'deliveries', '{tier}', 'parked', 'dead'])

/**
 * Topics whose `max.message.bytes` is too small for the largest event that is taken inline: such an event could be written by
 * its producer and then never be moved, or be neither inline nor claimed. One line each, with the difference.
 */
export function roomProblems(
  specs: readonly TopicSpec[],
  states: ReadonlyMap<string, TopicState>,
  maxEventBytes: number,
): string[] {
  const problems: string[] = []
  for (const { name, role } of specs) {
    if (!roles.has(role)) continue
    const setting = states.get(name)?.configs.get('max.message.bytes')
    const has = Number(setting?.value ?? Number.NaN)
    if (!Number.isFinite(has)) continue
    const event = maxEventBytes + headerRoom
    // Events are batched by their producers; what is ours goes in batches that must be taken whole.
    const needs = role === '{events}' ? event : Math.max(event, maxBatchBytes)
    if (has >= needs) continue
    const whose = setting?.source === 'topic' ? '' : " (the broker's own)"
    const why = needs === event ? `router.maxEventBytes ${maxEventBytes} + headers ${headerRoom}` : 'one batch'
    problems.push(
      `${name}: max.message.bytes is ${has}${whose}, must be at least ${needs} (${why}): ${needs - has} bytes too few`,
    )
  }
  return problems
}
