import { randomBytes } from 'node:crypto'
import { HooktideError } from '../core/error.ts'
import { type Job, jobControl } from '../core/job.ts'
import { JobTable } from '../core/job-table.ts'
import type { Subscription } from '../core/subscription.ts'
import type { LogReader } from '../ports.ts'
import type { Caller } from './contract.ts'
import { orderOf } from './give-order.ts'
import type { JobOperations, JobRedriveInput, ReplayInput } from './job-contract.ts'
import { jobJson } from './job-json.ts'
import { topicNames } from './names.ts'
import type { OrderInput } from './order-input.ts'
import type { OperationParts } from './parts.ts'
import { partitionsOf } from './read-topic.ts'
import { previewReplay } from './replay-preview.ts'
import { replayRanges } from './replay-range.ts'
import { tenantOf } from './tenant-of.ts'

/** Jobs: their orders in `control`. The work is done by whoever runs the role router. */
export function directJobs(parts: OperationParts, caller: Caller): JobOperations {
  const { kafka, config, clock, control } = parts
  const names = topicNames(config)

  async function table(): Promise<JobTable> {
    const jobs = new JobTable()
    for (const [key, { order }] of await control.read()) if (key.startsWith('job:') && order) jobs.apply(key, order)
    return jobs
  }

  async function withReader<T>(use: (reader: LogReader) => Promise<T>): Promise<T> {
    const reader = kafka.reader()
    try {
      return await use(reader)
    } finally {
      await reader.close()
    }
  }

  const isMine = (job: Job) => caller.tenant === null || job.tenant === caller.tenant

  async function found(id: string): Promise<{ jobs: JobTable; job: Job }> {
    const jobs = await table()
    const job = jobs.get(id)
    if (job !== undefined && isMine(job)) return { jobs, job }
    throw new HooktideError('not-found', `there is no job ${id.slice(0, 100)}`, {
      remedy: '`hooktide jobs list --all` shows those there are.',
    })
  }

  async function json({ jobs, job }: { jobs: JobTable; job: Job }) {
    if (!job.untilLive) return jobJson(jobs, job)
    const ends = new Map<string, number>()
    await withReader(async (reader) => {
      for (const topic of new Set([...job.parts.keys()].map((part) => part.slice(0, part.lastIndexOf('/'))))) {
        for (const [partition, end] of await reader.ends(topic)) ends.set(`${topic}/${partition}`, end)
      }
    })
    return jobJson(jobs, job, ends)
  }

  /** Of other tenants than the caller's there is none. */
  async function subscriptionOf(id: string): Promise<Subscription | null> {
    const entry = (await parts.subscriptions.read()).get(id)
    if (entry === undefined) return null
    if (entry.ok && (caller.tenant === null || entry.value.tenant === caller.tenant)) return entry.value
    throw unknown(id)
  }

  async function wanted(input: ReplayInput): Promise<Subscription | null> {
    const subscription = await subscriptionOf(input.subscription)
    if (input.expected === true && subscription !== null) {
      throw new HooktideError('conflict', `there is a subscription ${input.subscription} already`, {
        remedy: 'Replay it with --until-live, or give another id.',
      })
    }
    if (input.expected !== true && subscription === null) throw unknown(input.subscription)
    return subscription
  }

  async function refuseSecond(kind: Job['kind'], subscription: string | null, tenant = caller.tenant): Promise<void> {
    const jobs = await table()
    for (const job of jobs.all()) {
      if (job.kind !== kind || job.subscriptionId !== subscription || !isMine(job)) continue
      if (subscription === null && job.tenant !== tenant) continue
      if (!['running', 'cancelling'].includes(jobs.state(job))) continue
      throw new HooktideError('conflict', `job ${job.id} does this already, since it was started by ${job.by}`, {
        remedy: `Wait for it, or end it with \`hooktide jobs cancel ${job.id}\`.`,
      })
    }
  }

  async function start(
    job: Omit<Job, 'id' | 'by' | 'atMs' | 'reason' | 'cancelledBy' | 'tenant'>,
    input: OrderInput,
    tenant = caller.tenant,
  ) {
    const nowMs = Math.floor(clock.now())
    const id = `${nowMs.toString(36)}-${randomBytes(4).toString('hex')}`
    const { by, atMs, reason = null } = orderOf(nowMs, caller, { kind: 'job', target: id, order: job.kind }, input)
    const whole: Job = { ...job, id, by, atMs, reason, cancelledBy: null, tenant }
    await control.give(jobControl(whole))
    return json(await found(id))
  }

  return {
    async replay(input) {
      checkTimes(input)
      await wanted(input)
      await refuseSecond('replay', input.subscription)
      const {
        subscription: subscriptionId,
        type,
        fromMs,
        toMs,
        onlyMissing,
        untilLive = false,
        perSecond = defaultPerSecond,
      } = input
      const ranges = await withReader((reader) => replayRanges(kafka, reader, names.events, input))
      const filter = given({ type, fromMs, toMs, onlyMissing: onlyMissing === true ? true : undefined })
      return start({ kind: 'replay', subscriptionId, perSecond, untilLive, parts: ranges, filter }, input)
    },

    async preview(input) {
      checkTimes(input)
      const subscription = await wanted({ ...input, expected: false })
      return withReader(async (reader) => {
        const ranges = await replayRanges(kafka, reader, names.events, { ...input, untilLive: false })
        return previewReplay(parts, reader, subscription as Subscription, ranges, input)
      })
    },

    async redrive(input: JobRedriveInput) {
      const { subscription, reason: deadReason, lastError, since: fromMs, until: toMs } = input
      checkTimes({ fromMs, toMs })
      if (subscription !== undefined && (await subscriptionOf(subscription)) === null) throw unknown(subscription)
      const tenant = tenantOf(caller, input.tenant) ?? null
      await refuseSecond('redrive', subscription ?? null, tenant)
      const parts = await withReader(async (reader) => {
        await partitionsOf(kafka, names.dead)
        const [starts, ends] = await Promise.all([reader.starts(names.dead), reader.ends(names.dead)])
        return new Map([...ends].map(([p, to]) => [`${names.dead}/${p}`, { from: starts.get(p) ?? 0, to }]))
      })
      const filter = given({ deadReason, lastError, fromMs, toMs })
      const { perSecond = defaultPerSecond } = input
      const subscriptionId = subscription ?? null
      const job = { kind: 'redrive', subscriptionId, perSecond, untilLive: false, parts, filter } as const
      return start(job, { by: input.by, reason: input.why }, tenant)
    },

    async list({ all = false, limit = 50 }) {
      const jobs = await table()
      const mine = [...jobs.all()].filter(isMine).sort((a, b) => b.atMs - a.atMs)
      const shown = mine.filter((job) => all || ['running', 'cancelling'].includes(jobs.state(job)))
      return { jobs: await Promise.all(shown.slice(0, limit).map((job) => json({ jobs, job }))) }
    },

    show: async (id) => json(await found(id)),

    async cancel(id, input) {
      const { jobs, job } = await found(id)
      if (jobs.state(job) !== 'running') return json({ jobs, job })
      const order = orderOf(clock.now(), caller, { kind: 'job', target: id, order: 'cancel' }, input)
      await control.give(jobControl({ ...job, cancelledBy: order.by, reason: order.reason ?? job.reason }))
      return json(await found(id))
    },
  }
}

function unknown(id: string): HooktideError {
  return new HooktideError('not-found', `there is no subscription ${id.slice(0, 100)}`, {
    remedy: '`hooktide subscriptions list` shows those there are.',
  })
}

function checkTimes({ fromMs, toMs }: { readonly fromMs?: number | undefined; readonly toMs?: number | undefined }) {
  if (fromMs === undefined || toMs === undefined || fromMs < toMs) return
  throw new HooktideError('usage', 'the time range ends before it begins', { remedy: 'Give a later end.' })
}

function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never
}

/** Not to crowd out live traffic; whoever knows better says so. */
const defaultPerSecond = 500
