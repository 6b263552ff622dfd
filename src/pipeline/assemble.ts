import { ClockOffset } from '../core/clock-offset.ts'
import { DeadCredit } from '../core/dead-credit.ts'
import { Ladder } from '../core/ladder.ts'
import type { Subscription } from '../core/subscription.ts'
import type { GroupConsumer } from '../ports.ts'
import { Attempter } from './attempter.ts'
import { Circuits } from './circuits.ts'
import { ClaimedBodies } from './claimed-bodies.ts'
import { ControlOrders } from './control-orders.ts'
import { Deliverer } from './deliverer.ts'
import { Executor } from './executor.ts'
import { createTargets } from './executor-target.ts'
import { MemoryBudget } from './lane-flow.ts'
import { sourceTopics } from './lane-topics.ts'
import { LogQuota } from './log-quota.ts'
import { openRouter } from './open-router.ts'
import type { PipelineDeps } from './pipeline-deps.ts'
import type { PipelineSettings } from './pipeline-settings.ts'
import type { Router } from './router.ts'
import { Subscriptions } from './subscriptions.ts'
import type { Failing } from './troubles.ts'

export interface Pipeline {
  /** Mono ms since the coordinator last confirmed a membership of ours, the older of both roles'; 0: there is none yet, or no more. */
  leaseAgeMs(): number
  readonly subscriptions: Subscriptions
  readonly router: Router | null
  readonly deliverer: Deliverer | null
  readonly executor: Executor
  readonly circuits: Circuits
  readonly clockOffset: ClockOffset
  readonly ladder: Ladder
  readonly budget: MemoryBudget
  /** Reads the tables to their ends, then joins the groups. */
  start(): Promise<void>
  /** Drains, commits, leaves. */
  stop(): Promise<void>
}

/** Wires router, lanes and executor of one process; the outside world comes in by `deps`. */
export function assemblePipeline(settings: PipelineSettings, deps: PipelineDeps): Pipeline {
  const { kafka, clock, observer } = deps
  const readers = {
    follow: kafka.reader(),
    ask: kafka.reader(),
    sweep: kafka.reader(),
    bypass: kafka.reader(),
    jobs: kafka.reader(),
  }
  const subscriptions = new Subscriptions({
    topic: settings.topics.subscriptions,
    clock,
    observer,
    followReader: readers.follow,
    askReader: readers.ask,
    decode: deps.decodeSubscription,
    reserved: settings.reservedTypes,
  })
  const control = new ControlOrders({
    topic: settings.topics.control,
    clock,
    observer,
    followReader: readers.follow,
    askReader: readers.ask,
    decode: deps.decodeControl,
    changed: (kind, target) => deliverer?.ordered(kind, target),
  })
  const clockOffset = new ClockOffset()
  const ladder = new Ladder(settings.tiers, settings.commit.movesEveryMs + commitSlackMs)
  const budget = new MemoryBudget(settings.maxBytes)
  const subscription = (id: string) => subscriptions.get(id)
  const disable = (found: Subscription, reason: string, since: Failing | null) => {
    const before = subscriptions.get(found.id) ?? found
    if (subscriptions.disable(found, reason)) deps.troubles.disabled(before, reason, since)
  }

  const consumer = settings.roles.deliverer
    ? kafka.consumer({
        group: settings.groups.deliverer,
        topics: sourceTopics(settings.topics),
        assign: 'lanes',
        drainMs: settings.drainMs,
      })
    : null
  const circuits = new Circuits({
    clock,
    observer,
    policy: settings.circuit,
    changed: (circuit, closed) => deliverer?.circuitChanged(circuit, closed),
    opened: (circuit) => deliverer?.circuitOpened(circuit),
  })
  const claimed = new ClaimedBodies({
    ...{ objects: deps.objects, clock, observer },
    ...settings.claims,
    back: () => executor.retryHeld(),
  })
  const attempter = new Attempter({
    ...{ clock, observer, tracer: deps.tracer },
    sender: deps.sender,
    secrets: deps.secrets,
    accesses: deps.accesses,
    retryAfterCapMs: settings.policy.retryAfterCapMs,
    totalTimeoutMs: settings.totalTimeoutMs,
    claimed,
    maxEventAgeMs: settings.maxEventAgeMs,
    subscription,
  })
  const targetOf = createTargets({
    subscription,
    originOf: deps.originOf,
    accesses: deps.accesses,
    lanes: settings.lanes,
    maxPerSubscription: settings.executor.maxPerSubscription,
  })
  const executor: Executor = new Executor(
    { ...settings.executor, leased: () => consumer !== null && consumer.leaseAgeMs() < settings.leaseMs },
    clock,
    targetOf,
    (work) => attempter.run(work, executor),
    ({ delivery: { claim } }) => (claim === undefined ? 0 : claimed.waitMs(claim)),
  )
  deps.accesses.onChange((id) => executor.wake(id))
  const deliverer: Deliverer | null =
    consumer === null
      ? null
      : new Deliverer({
          kafka,
          consumer,
          executor,
          subscriptions,
          group: settings.groups.deliverer,
          transactionalIdPrefix: settings.transactionalIdPrefix,
          world: {
            clock,
            observer,
            successes: new LogQuota(clock, settings.successLines),
            executor,
            topics: settings.topics,
            rejectedPartitions: settings.rejectedPartitions,
            ladder,
            policy: settings.policy,
            clockOffset,
            lines: settings.lines,
            crowd: settings.crowd,
            circuits,
            deadCredit: new DeadCredit(settings.deadCredit),
            orders: control.orders,
            lanes: settings.lanes,
            originOf: deps.originOf,
            subscription,
            freshen: () => subscriptions.freshen(),
            gone: (found) => disable(found, 'the endpoint answered 410 Gone', null),
            failing: {
              policy: settings.failing,
              told(found, failing) {
                if (!failing.disable) deps.troubles.failing(found, failing)
                else disable(found, failingReason(failing, clock.now()), failing)
              },
            },
            dead: (death) => deps.troubles.dead(death),
          },
          span: settings.span,
          flowLimits: settings.flow,
          budget,
          commit: settings.commit,
          sweepReader: readers.sweep,
          bypassReader: readers.bypass,
          stateReader: readers.ask,
          decodeLaneState: deps.decodeLaneState,
          stopDrainMs: settings.stopDrainMs,
          onFatal: deps.onFatal,
        })
  const { router, consumer: routerConsumer } = openRouter(settings, deps, {
    subscriptions,
    control,
    reader: readers.ask,
    jobReader: readers.jobs,
  })

  return {
    leaseAgeMs: () => Math.max(0, ...[consumer, routerConsumer].map(ageOf)),
    subscriptions,
    router,
    deliverer,
    executor,
    circuits,
    clockOffset,
    ladder,
    budget,
    async start() {
      await Promise.all([subscriptions.load(), control.load()])
      // Deliveries first: what a router adds then finds its lane.
      await Promise.all([deliverer?.start(), router?.start()])
    },
    async stop() {
      // What waits for the table is let go first; then both roles end at once: the time to stop is one.
      subscriptions.stop()
      await Promise.all([router?.stop(), deliverer?.stop()])
      control.stop()
      circuits.stop()
      await Promise.all(Object.values(readers).map((reader) => reader.close()))
    },
  }
}

function failingReason({ sinceMs, failures, error }: Failing, nowMs: number): string {
  const hours = Math.round((nowMs - sinceMs) / 3_600_000)
  return `no success in ${hours} h (${failures} attempts failed, the last: ${error.slice(0, 200)})`
}

/** A transaction's own time on top of its batching, on a bad day: what ripens earlier than it is due only waits in memory. */
const commitSlackMs = 250

function ageOf(member: GroupConsumer | null): number {
  const age = member?.leaseAgeMs() ?? 0
  return Number.isFinite(age) ? age : 0
}
