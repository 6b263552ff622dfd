import { afterEach, describe, expect, it } from 'vitest'
import { runShare } from './campaign.ts'
import { plants } from './plants.ts'

/** Where the first find of a rare one is known, the seeds before it are left out: they only take time. */
const from: Readonly<Record<string, number>> = {
  'reset-taken-for-repeat': 21,
  'stale-result-kept': 65,
  'order-during-fetch-missed': 351,
}

describe('planted mistakes', () => {
  afterEach(() => {
    expect(Object.keys(plants).length).toBeGreaterThanOrEqual(28)
  })

  it.each(Object.keys(plants))('%s is found', { timeout: 240_000 }, async (plant) => {
    const tally = await runShare({
      mode: 'safety',
      from: from[plant] ?? 1,
      seeds: 1_000,
      faults: null,
      plant,
      stopAtFirst: true,
      step: 1,
    })
    expect(tally.failures.length, `not found in ${tally.runs} seeds`).toBe(1)
  })
})
