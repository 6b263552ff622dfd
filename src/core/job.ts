import type { Control } from './control.ts'
import { fail, ok, type Result } from './result.ts'

export type JobKind = 'replay' | 'redrive'

/** Offsets of one partition that a job goes through: from, and up to but without `to`. Null: until it has caught up with live. */
export interface PartRange {
  readonly from: number
  readonly to: number | null
}

/**
 * Deliveries written again from the log, as its order stands in `control` under `job:<id>`. It is worked in parts, one per
 * partition (`orders/3` of events, `dead/3` of dead letters); each part is a stream of its own, so what a crashed or doubled
 * one writes again is recognised by the lanes.
 */
export interface Job {
  readonly id: string
  readonly kind: JobKind
  /** Who started it. */
  readonly by: string
  readonly atMs: number
  readonly reason: string | null
  readonly cancelledBy: string | null
  /** A replay has one; a redrive without one is for all. */
  readonly subscriptionId: string | null
  /** Bound to it: others' subscriptions and dead letters are passed over. */
  readonly tenant: string | null
  /** Most deliveries written a second, over all parts; null: as fast as it goes. */
  readonly perSecond: number | null
  /** Replay: live traffic of the subscription begins where the job ends, per partition (docs/replay.md). */
  readonly untilLive: boolean
  readonly parts: ReadonlyMap<string, PartRange>
  readonly filter: JobFilter
}

export interface JobFilter {
  /** Replay: only events of this type; a pattern as in subscriptions. */
  readonly type?: string
  /** Event's time, or time of death, epoch ms: at or after, before. */
  readonly fromMs?: number
  readonly toMs?: number
  /** Replay: only what was not delivered, and waits for no retry. */
  readonly onlyMissing?: boolean
  /** Redrive: why it died, and its last error (`503`, `timeout`). */
  readonly deadReason?: string
  readonly lastError?: string
}

/** `closing`: the cut between the job and live traffic is being settled, or what lies below it is being written. */
export type PartState = 'running' | 'closing' | 'done' | 'failed'

/** How far a part has come, as it stands in `control` under `job:<id>/<part>`. Everything below `next` is written and acknowledged. */
export interface PartProgress {
  readonly state: PartState
  readonly next: number
  readonly written: number
  /** Looked at and not wanted. */
  readonly passed: number
  readonly unreadable: number
  /** Live traffic begins here, in this generation of the partition's own stream; null: not settled yet. */
  readonly cut: number | null
  readonly generation: number | null
  readonly error: string | null
}

/** Name of a part's stream: what the origins of its deliveries carry. */
export function jobStream(id: string, part: string): string {
  return `${jobPrefix}${id}:${part}`
}

export function isJobStream(stream: string): boolean {
  return stream.startsWith(jobPrefix)
}

/** No topic's name has a colon. */
const jobPrefix = 'job:'

export function startOf(range: PartRange): PartProgress {
  const none = { cut: null, generation: null, error: null }
  return { state: 'running', next: range.from, written: 0, passed: 0, unreadable: 0, ...none }
}

export function isOver({ state }: PartProgress): boolean {
  return state === 'done' || state === 'failed'
}

/**
 * What is known of a part after another record of it. Only forward, whoever writes: with two owners for a moment, the one
 * that is behind takes nothing back. The first cut counts: all that ask are told the same.
 */
export function mergeProgress(known: PartProgress, next: PartProgress): PartProgress {
  const ahead = rank[next.state] > rank[known.state] || next.next > known.next ? next : known
  const settled = known.cut === null ? next : known
  return {
    ...ahead,
    state: rank[next.state] > rank[known.state] ? next.state : known.state,
    next: Math.max(known.next, next.next),
    cut: settled.cut,
    generation: settled.generation,
    error: known.error ?? next.error,
  }
}

const rank: Readonly<Record<PartState, number>> = { running: 0, closing: 1, done: 2, failed: 2 }

export function jobControl(job: Job): Control {
  const { fromMs, toMs, type, onlyMissing, deadReason, lastError } = job.filter
  return {
    v: 1,
    kind: 'job',
    target: job.id,
    order: job.cancelledBy === null ? job.kind : 'cancel',
    by: job.by,
    atMs: job.atMs,
    ...(job.reason === null ? {} : { reason: job.reason }),
    args: given({
      what: job.kind,
      parts: [...job.parts].map(([part, { from, to }]) => `${part}=${from}-${to ?? ''}`).join(' '),
      subscription: job.subscriptionId,
      tenant: job.tenant,
      perSecond: job.perSecond,
      untilLive: job.untilLive ? true : null,
      cancelledBy: job.cancelledBy,
      ...{ type, fromMs, toMs, onlyMissing, deadReason, lastError },
    }),
  }
}

export function decodeJob({ target, order, by, atMs, reason, args = {} }: Control): Result<Job> {
  const what = args.what ?? order
  if (what !== 'replay' && what !== 'redrive') return fail(`job ${target}: order ${order} is unknown`)
  const text = (name: string) => (typeof args[name] === 'string' ? (args[name] as string) : undefined)
  const number = (name: string) => (typeof args[name] === 'number' ? (args[name] as number) : undefined)
  const parts = new Map<string, PartRange>()
  for (const entry of (text('parts') ?? '').split(' ')) {
    const match = /^([^\s=]+\/\d+)=(\d{1,16})-(\d{0,16})$/.exec(entry)
    if (match === null) return fail(`job ${target}: args.parts can not be read`)
    parts.set(match[1] as string, { from: Number(match[2]), to: match[3] === '' ? null : Number(match[3]) })
  }
  const subscriptionId = text('subscription') ?? null
  if (what === 'replay' && subscriptionId === null) return fail(`job ${target}: a replay needs args.subscription`)
  const filter = {
    type: text('type'),
    fromMs: number('fromMs'),
    toMs: number('toMs'),
    onlyMissing: args.onlyMissing === true ? true : undefined,
    deadReason: text('deadReason'),
    lastError: text('lastError'),
  }
  return ok({
    id: target,
    kind: what,
    by,
    atMs,
    reason: reason ?? null,
    cancelledBy: order === 'cancel' ? (text('cancelledBy') ?? by) : null,
    subscriptionId,
    tenant: text('tenant') ?? null,
    perSecond: number('perSecond') ?? null,
    untilLive: args.untilLive === true,
    parts,
    filter: given(filter) as JobFilter,
  })
}

export function progressControl(job: Job, part: string, progress: PartProgress, atMs: number): Control {
  const args = given({ ...progress })
  return { v: 1, kind: 'job', target: `${job.id}/${part}`, order: job.kind, by: 'hooktide', atMs, args }
}

export function decodeProgress({ target, args = {} }: Control): Result<PartProgress> {
  const { state } = args
  if (typeof state !== 'string' || !Object.hasOwn(rank, state)) return fail(`job ${target}: args.state is unknown`)
  const count = (name: string) => (typeof args[name] === 'number' ? Math.max(0, args[name] as number) : 0)
  const orNull = (name: string) => (typeof args[name] === 'number' ? (args[name] as number) : null)
  return ok({
    state: state as PartState,
    next: count('next'),
    written: count('written'),
    passed: count('passed'),
    unreadable: count('unreadable'),
    cut: orNull('cut'),
    generation: orNull('generation'),
    error: typeof args.error === 'string' ? args.error : null,
  })
}

type Scalar = string | number | boolean

function given(fields: Readonly<Record<string, Scalar | null | undefined>>): Record<string, Scalar> {
  const entries = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined)
  return Object.fromEntries(entries) as Record<string, Scalar>
}
