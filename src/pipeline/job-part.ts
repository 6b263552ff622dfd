import { HooktideError, messageOf } from '../core/error.ts'
import { settledMs } from '../core/freshness.ts'
import { isOver, type Job, type PartProgress } from '../core/job.ts'
import { type FetchedBatch, type InRecord, type OutRecord, recordBytes } from '../core/record.ts'
import type { Clock, LogReader, Observer, Producer } from '../ports.ts'
import { type JobLog, placeOf } from './job-log.ts'

/** What a record comes to: the deliveries to write for it, or why there are none. */
export type PartYield = readonly OutRecord[] | 'passed' | 'unreadable'

/** `wait`: not yet; `stop`: never. */
export type Footing = { readonly t: 'ready' } | { readonly t: 'wait' } | { readonly t: 'stop'; readonly reason: string }

/** What tells one kind of job from the other. Called in log order. */
export interface PartWork {
  /** Before each batch is turned into deliveries: is everything there that it takes, as new as it must be? */
  footing(job: Job): Promise<Footing>
  deliveriesOf(job: Job, record: InRecord): PartYield
  /** What was done before a crash: seen again, not written. */
  remember?(job: Job, record: InRecord): void
}

export interface PartDeps {
  readonly log: JobLog
  readonly clock: Clock
  readonly observer: Observer
  readonly reader: LogReader
  readonly producer: Producer
  /** Generation of the stream of this events partition; 0 for dead letters. */
  readonly generation: number
  readonly work: PartWork
  /** Is so much waiting to be delivered that more would only be in the way? */
  congested(job: Job): Promise<boolean>
}

/**
 * One part of a job, from where it stands to its end: reads, writes, awaits, saves how far it is. A second run of it, here or
 * elsewhere, writes the same again under the same origins, which lanes drop; so it may be ended at any point.
 */
export class JobPart {
  readonly id: string
  readonly part: string
  readonly #deps: PartDeps
  #running: Promise<void> | null = null
  #stopped = false
  #savedMs = 0
  #allowedMs = 0
  #held: { readonly from: number; readonly batch: FetchedBatch; readonly written: number } | null = null
  #fetchBytes = leastFetchBytes
  #wake: (() => void) | null = null

  constructor(deps: PartDeps, id: string, part: string) {
    this.#deps = deps
    this.id = id
    this.part = part
  }

  run(): Promise<void> {
    this.#running ??= this.#run()
    return this.#running
  }

  /** Ends after the write under way; says how far it is. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#wake?.()
    await this.#running
  }

  async #run(): Promise<void> {
    const { observer, log } = this.#deps
    for (let failures = 0; !this.#stopped; failures++) {
      try {
        await log.control.freshen()
        await this.#work()
        return
      } catch (error) {
        if (this.#stopped) return
        if (failures > 3 && error instanceof HooktideError && error.code === 'internal')
          return await this.#giveUp(error)
        observer.log('warn', 'job.part_failed', { job: this.id, part: this.part, error: messageOf(error), failures })
        await this.#sleep(Math.min(5_000, 100 * 2 ** Math.min(failures, 6)))
      }
    }
  }

  /** Offsets that its partition does not have: the topic was made anew. */
  async #giveUp(error: HooktideError): Promise<void> {
    const job = this.#deps.log.control.jobs.get(this.id)
    const progress = this.#known()
    if (job !== undefined && progress !== undefined) await this.#finish(job, progress, error.message)
  }

  async #work(): Promise<void> {
    const { log, clock } = this.#deps
    const { jobs } = log.control
    let progress = this.#known()
    if (progress === undefined) return
    await this.#recall(progress.next)
    this.#savedMs = clock.mono()
    for (;;) {
      const job = jobs.get(this.id)
      const known = this.#known()
      if (job === undefined || known === undefined || isOver(known)) return
      // Of another owner too: states and cuts only go forward.
      progress = { ...progress, state: known.state, cut: known.cut, generation: known.generation }
      if (this.#stopped) return this.#save(job, progress)
      if (job.cancelledBy !== null) return this.#finish(job, progress, null)
      const footing = await this.#deps.work.footing(job)
      if (footing.t === 'stop') return this.#finish(job, progress, footing.reason)
      if (footing.t === 'wait') {
        await this.#sleep(250)
        continue
      }
      const bound = await this.#bound(job, progress)
      if (bound === 'close') await this.#close(job, progress)
      else if (progress.next >= bound) return this.#finish(job, progress, null)
      else progress = await this.#step(job, progress, bound)
      if (clock.mono() - this.#savedMs >= saveEveryMs) await this.#save(job, progress)
    }
  }

  #known(): PartProgress | undefined {
    return this.#deps.log.control.jobs.part(this.id, this.part)
  }

  /** Up to where is it the job's? `close`: it has all but caught up with live. */
  async #bound(job: Job, { next, cut }: PartProgress): Promise<number | 'close'> {
    const to = job.parts.get(this.part)?.to ?? null
    if (to !== null) return to
    if (cut !== null) return cut
    const { topic, partition } = placeOf(this.part)
    const end = (await this.#deps.reader.ends(topic, [partition])).get(partition) ?? 0
    return end - next <= closeWithin ? 'close' : end
  }

  /** From here on live traffic waits for what is left. */
  async #close(job: Job, progress: PartProgress): Promise<void> {
    if (progress.state !== 'closing') {
      // Every router must know the subscription before the log ends where live traffic begins.
      await this.#sleep(settledMs)
      if (this.#stopped) return
      await this.#save(job, { ...progress, state: 'closing' })
    }
    await this.#deps.log.settle(job, this.part, this.#deps.generation)
  }

  async #step(job: Job, progress: PartProgress, bound: number): Promise<PartProgress> {
    const { work, producer, clock } = this.#deps
    const batch = await this.#batch(progress)
    const counts = { written: progress.written, passed: progress.passed, unreadable: progress.unreadable }
    /** What is written and acknowledged so far: to be had when this ends early. */
    let done = progress
    let out: OutRecord[] = []
    let bytes = 0
    const flush = async (next: number): Promise<boolean> => {
      if (out.length > 0) {
        if (await this.#waitForPace(job, progress, out.length)) return false
        await producer.send(out)
        counts.written += out.length
      }
      done = { ...progress, ...counts, next }
      out = []
      bytes = 0
      return true
    }
    const most = this.#chunk(job)
    for (const record of batch.records) {
      if (record.offset >= bound) break
      const found = work.deliveriesOf(job, record)
      if (typeof found === 'string') counts[found]++
      else {
        out.push(...found)
        bytes += recordBytes(record) + 512
      }
      if (out.length < most && bytes < chunkBytes) continue
      if (!(await flush(record.offset + 1))) return done
      if (clock.mono() - this.#savedMs >= saveEveryMs) return done
    }
    counts.unreadable += batch.undecodable?.length ?? 0
    this.#resize(job, counts.written + out.length - (this.#held?.written ?? progress.written))
    await flush(Math.max(done.next, Math.min(batch.nextOffset, bound)))
    // Nothing came: it is not stable yet.
    if (batch.nextOffset <= progress.next) await this.#sleep(100)
    return done
  }

  /** Read once: what the pace leaves of a batch is there for the next step. */
  async #batch({ next: from, written }: PartProgress): Promise<FetchedBatch> {
    const held = this.#held
    if (held !== null && held.from <= from && from < held.batch.nextOffset) {
      return { ...held.batch, records: held.batch.records.filter(({ offset }) => offset >= from) }
    }
    const { topic, partition } = placeOf(this.part)
    const batch = await this.#deps.reader.fetch({ topic, partition, from, maxBytes: this.#fetchBytes })
    this.#held = { from, batch, written }
    return batch
  }

  /** About a second's worth: decoding more in one go, for all parts at once, keeps live traffic waiting in this thread. */
  #resize(job: Job, written: number): void {
    const enough = this.#share(job) ?? 4 * chunkRecords
    const wanted = written < enough ? this.#fetchBytes * 2 : this.#fetchBytes / 2
    this.#fetchBytes = Math.min(mostFetchBytes, Math.max(leastFetchBytes, wanted))
  }

  #share(job: Job): number | null {
    const parts = this.#deps.log.control.jobs.unfinishedParts(job)
    return job.perSecond === null ? null : job.perSecond / Math.max(1, parts)
  }

  #chunk(job: Job): number {
    const share = this.#share(job)
    return share === null ? chunkRecords : Math.max(1, Math.min(chunkRecords, Math.floor(share / 4)))
  }

  /** True: it is over before these may be written. What live traffic waits for is not held back. */
  async #waitForPace(job: Job, { state }: PartProgress, count: number): Promise<boolean> {
    const { clock, log } = this.#deps
    const over = () => this.#stopped || log.control.jobs.get(this.id)?.cancelledBy !== null
    if (state === 'closing') return over()
    // Not for ever: a lane may stand for reasons of its own.
    for (let waitedMs = 0; !over() && waitedMs < patienceMs && (await this.#deps.congested(job)); waitedMs += 250) {
      await this.#sleep(250)
    }
    const share = this.#share(job)
    if (share === null) return over()
    while (!over() && clock.mono() < this.#allowedMs) {
      await this.#sleep(Math.min(250, Math.ceil(this.#allowedMs - clock.mono())))
    }
    this.#allowedMs = Math.max(clock.mono(), this.#allowedMs) + (count * 1_000) / share
    return over()
  }

  /** Live traffic must know where it begins, whatever the end is: without it, it would never begin. */
  async #finish(job: Job, progress: PartProgress, error: string | null): Promise<void> {
    const { log, observer } = this.#deps
    if (job.parts.get(this.part)?.to === null && progress.cut === null) await this.#close(job, progress)
    await this.#save(job, { ...progress, state: error === null ? 'done' : 'failed', error })
    const { next, written, passed, unreadable } = progress
    const counts = { job: this.id, part: this.part, next, written, passed, unreadable }
    observer.log(error === null ? 'info' : 'error', 'job.part_ended', { ...counts, error })
    const end = log.control.jobs.get(this.id)
    if (end === undefined || log.control.jobs.unfinishedParts(end) > 0) return
    observer.log('info', 'job.ended', { job: this.id, state: log.control.jobs.state(end) })
  }

  async #save(job: Job, progress: PartProgress): Promise<void> {
    await this.#deps.log.save(job, this.part, progress)
    this.#savedMs = this.#deps.clock.mono()
  }

  async #recall(next: number): Promise<void> {
    const { work, reader, log } = this.#deps
    const job = log.control.jobs.get(this.id)
    const from = job?.parts.get(this.part)?.from
    if (work.remember === undefined || job === undefined || from === undefined) return
    const { topic, partition } = placeOf(this.part)
    for (let at = from; at < next && !this.#stopped; ) {
      const batch = await reader.fetch({ topic, partition, from: at, maxBytes: 1 << 20 })
      for (const record of batch.records) if (record.offset < next) work.remember(job, record)
      if (batch.nextOffset <= at) return
      at = batch.nextOffset
    }
  }

  #sleep(ms: number): Promise<void> {
    if (this.#stopped) return Promise.resolve()
    return new Promise((resolve) => {
      const cancel = this.#deps.clock.after(ms, () => done())
      const done = () => {
        this.#wake = null
        cancel()
        resolve()
      }
      this.#wake = done
    })
  }
}

const chunkRecords = 200
const chunkBytes = 512 * 1024
const leastFetchBytes = 32 * 1024
const mostFetchBytes = 512 * 1024
const saveEveryMs = 2_000
const patienceMs = 5_000
/** Offsets that live traffic may have to wait for at the end. */
const closeWithin = 500
