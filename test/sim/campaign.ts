import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import type { Mode } from './plan.ts'
import { plants } from './plants.ts'
import { runSeed } from './run-seed.ts'
import { storyOf } from './story.ts'

export interface Campaign {
  readonly mode: Mode
  readonly from: number
  readonly seeds: number
  /** Only these faults, each wherever it can strike. */
  readonly faults: readonly string[] | null
  readonly plant: string | null
  /** One failing seed is enough. */
  readonly stopAtFirst: boolean
}

export interface Failure {
  readonly mode: Mode
  readonly seed: number
  readonly problems: readonly string[]
  readonly story: readonly string[]
}

export interface Tally {
  runs: number
  deliveries: number
  posts: number
  timers: number
  readonly failures: Failure[]
}

interface Share extends Campaign {
  readonly step: number
}

/** One seed after the other in this process. */
export async function runShare(share: Share, report: (tally: Tally) => void = () => {}): Promise<Tally> {
  const tally: Tally = { runs: 0, deliveries: 0, posts: 0, timers: 0, failures: [] }
  const { mode, faults } = share
  for (let seed = share.from; seed < share.from + share.seeds; seed += share.step) {
    const undo = share.plant === null ? null : plants[share.plant]?.()
    if (undo === undefined) throw new Error(`no plant ${share.plant}; there are ${Object.keys(plants).join(', ')}`)
    try {
      const verdict = await runSeed(seed, mode, { faults, ...(undo === null ? {} : { mistake: undo.mistake }) })
      tally.runs++
      tally.deliveries += verdict.evidence.expected.length
      tally.posts += verdict.posts
      tally.timers += verdict.timers
      if (verdict.problems.length > 0) {
        const story = storyOf(verdict.evidence, verdict.problems[0] as string)
        tally.failures.push({ mode, seed, problems: verdict.problems.slice(0, 10), story })
        report(tally)
        if (share.stopAtFirst) break
      }
    } finally {
      undo?.undo()
    }
  }
  return tally
}

/** The same over several processes; seeds are dealt out in turn, so that the share of each is alike. */
export async function runCampaign(campaign: Campaign, processes = Math.min(8, availableParallelism())): Promise<Tally> {
  const total: Tally = { runs: 0, deliveries: 0, posts: 0, timers: 0, failures: [] }
  const children = Array.from({ length: processes }, (_, i) => {
    const child = fork(new URL('./campaign-child.ts', import.meta.url), {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    const share: Share = { ...campaign, from: campaign.from + i, seeds: campaign.seeds - i, step: processes }
    child.send(share)
    return child
  })
  /** Ended by us because another has found what was looked for; any other end by a signal is no result. */
  const stopped = new Set<(typeof children)[number]>()
  await Promise.all(
    children.map(
      (child) =>
        new Promise<void>((resolve, reject) => {
          child.on('message', (tally: Tally) => {
            total.runs += tally.runs
            total.deliveries += tally.deliveries
            total.posts += tally.posts
            total.timers += tally.timers
            total.failures.push(...tally.failures)
            if (campaign.stopAtFirst && tally.failures.length > 0)
              for (const other of children) {
                if (other === child) continue
                stopped.add(other)
                other.kill()
              }
            resolve()
          })
          child.on('error', reject)
          child.on('exit', (code, signal) => {
            if (code === 0 || stopped.has(child)) resolve()
            else reject(new Error(`a share of the campaign ended with ${code ?? signal}`))
          })
        }),
    ),
  )
  total.failures.sort((a, b) => a.seed - b.seed)
  return total
}
