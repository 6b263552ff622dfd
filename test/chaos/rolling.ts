import { partitionOf } from '../../src/core/partition.ts'
import type { PostEntry } from '../sim/receiver.ts'
import { awaitEnd } from './end.ts'
import { wallMs } from './receiver.ts'
import { rollingEvents, rollingSubscriptions } from './rolling-plan.ts'
import { lanes } from './setting.ts'
import { openStage } from './stage.ts'
import { countWanted, judge, probes } from './verdict.ts'
import { pause, until } from './wait.ts'

const perSecond = 500
const workers = 3
const quietMs = 5_000
const mostPauseMs = 2_000

interface LanePause {
  readonly lane: number
  /** Longest time without a new POST, before any restart and during them, ms. */
  readonly quietMs: number
  readonly longestMs: number
  /** All pauses above four times the quiet one (and 100 ms) together, ms. */
  readonly totalMs: number
}

/**
 * A rolling restart as a platform does it: for each of three workers a new one is started, then the old one gets SIGTERM,
 * while 500 deliveries a second flow. Says how long each lane stood still, and what was sent twice.
 */
export async function runRolling(options: { brokers: string; folder: string; seed: number }): Promise<{
  lines: string[]
  ok: boolean
  json: object
}> {
  const { brokers, folder, seed } = options
  const beganMs = wallMs()
  const subscriptions = rollingSubscriptions()
  const stage = await openStage({
    kind: 'rolling',
    seed,
    records: 0,
    brokers,
    broker: null,
    folder,
    subscriptions,
    eventsPerSecond: perSecond,
  })
  try {
    const { fleet, source, watch, receiver } = stage
    const wanted = () => countWanted(subscriptions, source.produced)
    for (let n = 0; n < workers; n++) fleet.launch(`w${n}`)
    if (!(await fleet.started(60_000))) throw new Error('the workers did not start within 60 s')
    await source.produce(probes(rollingEvents(seed, 200)))
    const asleep = await awaitEnd(stage, wanted(), 60_000)
    if (asleep.length > 0) throw new Error(`it did not get to work: ${asleep.join('; ')}`)

    // More than it can take: the source is stopped when the last restart is over.
    const producing = source.produce(rollingEvents(seed, perSecond * 240))
    await pause(2_000)
    const fromMs = wallMs()
    await pause(quietMs)
    const restartsMs = wallMs()
    for (const old of fleet.living) {
      const fresh = fleet.launchMore()
      if (!(await until(() => fresh.has('service.started'), 60_000))) throw new Error(`${fresh.id} did not start`)
      old.signal('SIGTERM')
      if (!(await until(() => old.exit !== null, 40_000))) throw new Error(`${old.id} did not end`)
      await pause(1_000)
    }
    await pause(2_000)
    const untilMs = wallMs()
    source.stop()
    await producing
    const stuck = await awaitEnd(stage, wanted(), 120_000)
    await fleet.stop()
    await watch.stop()
    const { posts } = await receiver.journal()
    const verdict = await judge(stage, subscriptions, beganMs)
    const problems = [...stuck.map((line) => `stuck: ${line}`), ...verdict.problems]
    const pauses = Array.from({ length: lanes }, (_, lane) => pauseOf(lane, posts, fromMs, restartsMs, untilMs))
    const { open, uncommitted, zombie, unanswered } = verdict.duplicates
    const duplicates = open + uncommitted + zombie + problems.filter((line) => line.startsWith('duplicate')).length
    const inWindow = posts.filter(({ startMs }) => startMs >= fromMs && startMs <= untilMs).length
    const rate = inWindow / ((untilMs - fromMs) / 1000)
    const longest = Math.max(...pauses.map(({ longestMs }) => longestMs))
    const restless = Math.max(...pauses.map(({ quietMs }) => quietMs))
    const ok = problems.length === 0 && duplicates === 0 && longest < mostPauseMs
    return {
      ok,
      json: { ok, seed, rate, pauses, duplicates, unanswered, late: verdict.late, problems },
      lines: [
        `rolling restart of ${workers} workers in ${((untilMs - restartsMs) / 1000).toFixed(1)} s, ${rate.toFixed(0)} POSTs/s`,
        'lane  quiet ms  longest pause ms  all pauses ms',
        ...pauses.map(
          (p) =>
            `${String(p.lane).padStart(4)}  ${p.quietMs.toFixed(0).padStart(8)}  ${p.longestMs.toFixed(0).padStart(16)}  ${p.totalMs.toFixed(0).padStart(13)}`,
        ),
        `duplicates ${duplicates}; answered too late ${unanswered}; receiver stood still ${verdict.stallMs.toFixed(0)} ms`,
        ...problems.slice(0, 20),
        ...(restless < 500
          ? []
          : [
              `the machine stands still for ${restless.toFixed(0)} ms without any restart: it is too busy to measure this`,
            ]),
        ok ? 'holds' : `FAILS: a pause must be below ${mostPauseMs} ms, duplicates and problems 0`,
      ],
    }
  } finally {
    await stage.close()
  }
}

function pauseOf(
  lane: number,
  posts: readonly PostEntry[],
  fromMs: number,
  restartsMs: number,
  untilMs: number,
): LanePause {
  const starts = posts
    .filter(({ subscription, startMs }) => {
      return partitionOf(subscription, lanes) === lane && startMs >= fromMs && startMs <= untilMs
    })
    .map(({ startMs }) => startMs)
    .sort((a, b) => a - b)
  const gaps = [...starts, untilMs].map((ms, i) => ({ endMs: ms, gapMs: ms - (starts[i - 1] ?? fromMs) }))
  const quiet = Math.max(...gaps.filter(({ endMs }) => endMs <= restartsMs).map(({ gapMs }) => gapMs))
  const during = gaps.filter(({ endMs }) => endMs > restartsMs).map(({ gapMs }) => gapMs)
  const counted = during.filter((gapMs) => gapMs > Math.max(100, 4 * quiet))
  return {
    lane,
    quietMs: quiet,
    longestMs: Math.max(...during),
    totalMs: counted.reduce((sum, gapMs) => sum + gapMs, 0),
  }
}
