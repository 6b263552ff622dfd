import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { storyOf } from '../sim/story.ts'
import { deleteTopics } from './delete-topics.ts'
import type { Duplicates } from './duplicates.ts'
import { awaitEnd } from './end.ts'
import type { Outage } from './fleet.ts'
import { selfInflicted } from './logs.ts'
import { type FaultKind, type Plan, planOf } from './plan.ts'
import { wallMs } from './receiver.ts'
import { sessionMs } from './setting.ts'
import { openStage, type Stage } from './stage.ts'
import { countWanted, judge, probes, type Verdict } from './verdict.ts'
import { pause } from './wait.ts'

export interface RoundOptions {
  readonly seed: number
  readonly fault: FaultKind
  readonly records: number
  readonly brokers: string
  /** Null: the broker is somebody else's and is left alone. */
  readonly broker: Outage | null
  /** Configurations and logs of the workers, and the journal of the receiver. */
  readonly folder: string
}

export interface RoundResult {
  readonly seed: number
  readonly fault: FaultKind
  readonly workers: number
  readonly records: number
  readonly deliveries: number
  readonly posts: number
  /** POSTs that the receiver got to read only when their sender had given them up, and the longest it stood still, ms. */
  readonly late: number
  readonly unseen: number
  readonly stallMs: number
  /** Processes started, stopped and struck; brokers killed. */
  readonly changes: number
  readonly duplicates: Omit<Duplicates, 'problems'>
  /** Memberships lost without a fault of ours: the machine was too slow. */
  readonly evictions: number
  readonly moves: number
  readonly parked: number
  readonly dead: number
  readonly commits: number
  readonly settleMs: number
  readonly seconds: number
  readonly problems: readonly string[]
  /** For a person, when there are problems: what was done when, and what happened to the line of the first one. */
  readonly story: readonly string[]
}

/** One round: faults while events flow, then the end is waited for, then the verdict. */
export async function runRound(options: RoundOptions): Promise<RoundResult> {
  const { seed, fault, records, brokers, broker, folder } = options
  const beganMs = wallMs()
  const plan = planOf(seed, fault, records, sessionMs)
  const { subscriptions, eventsPerSecond } = plan
  const stage = await openStage({ kind: fault, seed, records, brokers, broker, folder, subscriptions, eventsPerSecond })
  try {
    const { stuck, settleMs } = await play(stage, plan)
    const verdict = await judge(stage, subscriptions, beganMs)
    const problems = [...stuck, ...verdict.problems]
    const { places, positions } = verdict.evidence
    const placed = (kind: string) => places.filter((place) => place.kind === kind).length
    const result: RoundResult = {
      seed,
      fault,
      workers: plan.workers,
      records: stage.source.produced.length,
      deliveries: countWanted(subscriptions, stage.source.produced),
      posts: verdict.evidence.posts.length,
      late: verdict.late,
      unseen: verdict.unseen,
      stallMs: verdict.stallMs,
      changes: stage.fleet.changes,
      duplicates: verdict.duplicates,
      evictions: selfInflicted(stage.fleet),
      moves: placed('tier'),
      parked: placed('parked'),
      dead: placed('dead'),
      commits: positions.length,
      settleMs,
      seconds: (wallMs() - beganMs) / 1000,
      problems,
      story: problems.length === 0 ? [] : tell(problems, verdict, beganMs),
    }
    const journal = { faults: verdict.evidence.faults, posts: verdict.evidence.posts }
    writeFileSync(join(folder, 'journal.json'), JSON.stringify(journal))
    if (problems.length === 0) await deleteTopics(brokers, stage.prefix)
    return result
  } finally {
    await stage.close()
  }
}

/** Resolves with what did not come to its end, and how long the end took after the last event and fault. */
async function play(stage: Stage, plan: Plan): Promise<{ stuck: string[]; settleMs: number }> {
  const { fleet, source, watch } = stage
  const wanted = () => countWanted(plan.subscriptions, source.produced)
  for (let n = 0; n < plan.workers; n++) fleet.launch(`w${n}`)
  if (!(await fleet.started(60_000))) throw new Error('the workers did not start within 60 s')
  // Faults strike a system at work: every lane has delivered and committed before the first of them.
  await source.produce(probes(plan.events))
  const asleep = await awaitEnd(stage, wanted(), 60_000)
  if (asleep.length > 0) throw new Error(`nothing was done to it, and it did not get to work: ${asleep.join('; ')}`)
  await Promise.all([
    source.produce(plan.events),
    ...plan.strikes.map(async (strike) => {
      await pause(strike.atMs)
      await fleet.strike(strike)
    }),
  ])
  const lastMs = wallMs()
  const stuck = (await awaitEnd(stage, wanted(), 60_000)).map((line) => `stuck: ${line}`)
  const settleMs = wallMs() - lastMs
  if (stuck.length === 0) {
    // One event more for every line: what is at rest must also still work.
    await source.produce(probes(plan.events))
    stuck.push(...(await awaitEnd(stage, wanted(), 40_000)).map((line) => `idle: after one event more, ${line}`))
  }
  await fleet.stop()
  await watch.stop()
  return { stuck, settleMs }
}

function tell(problems: readonly string[], { evidence }: Verdict, beganMs: number): string[] {
  const shown = problems.find((problem) => /#\d+/.test(problem)) ?? problems[0] ?? ''
  return [
    `times are ms since ${new Date(beganMs).toISOString()}`,
    ...evidence.faults.map(
      ({ kind, process, atMs, untilMs }) =>
        `${atMs.toFixed(0).padStart(9)} ${kind} ${process ?? 'broker'} until ${untilMs.toFixed(0)}`,
    ),
    `of: ${shown}`,
    ...storyOf(evidence, shown, 60),
  ]
}
