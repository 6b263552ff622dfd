import type { ReceivedRequest } from '../cli/receiver.ts'
import type { JobOperations } from '../operations/job-contract.ts'
import type { Clock } from '../ports.ts'

export interface RehearsalCheck {
  readonly what: string
  readonly ok: boolean
  readonly found: string
}

export interface RehearsalReport {
  readonly ok: boolean
  readonly prefix: string
  /** Events of a phase. */
  readonly events: number
  /** From the start of the process to the first delivery, and to the last, s. */
  readonly firstDeliveryS: number | null
  readonly recoveryS: number | null
  readonly recoveredPerSecond: number | null
  readonly redriveS: number | null
  readonly checks: readonly RehearsalCheck[]
}

/** What the drill is played on. */
export interface DrillWorld {
  /** Acknowledged when it resolves. */
  produce(numbers: readonly number[]): Promise<void>
  /** How the endpoint answers from now on. */
  answer(status: number): void
  startService(): Promise<{ stop(): Promise<void> }>
  /** Dead letters there are. */
  dead(): Promise<number>
  readonly jobs: Pick<JobOperations, 'redrive' | 'show'>
}

export interface DrillOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly note: (line: string) => void
  readonly events: number
}

/** Steady, stopped, a backlog, started again, timed; then deaths and a redrive; and what must be true of all of it. */
export class Drill {
  readonly #options: DrillOptions
  /** Delivery ids by event number, as they were accepted. */
  readonly #accepted = new Map<number, string[]>()
  readonly #refused = new Map<number, Set<string>>()
  readonly #order: number[] = []
  readonly #unverified: string[] = []
  #count = 0

  constructor(options: DrillOptions) {
    this.#options = options
  }

  readonly received = ({ body, status, deliveryId, verdict }: ReceivedRequest): void => {
    if (verdict !== 'verified') this.#unverified.push(`${deliveryId || 'a request without an id'}: ${verdict}`)
    const n = numberOf(body)
    if (n === null || status === null) return
    if (status >= 400) {
      this.#refused.set(n, (this.#refused.get(n) ?? new Set()).add(deliveryId))
      return
    }
    const before = this.#accepted.get(n)
    if (before === undefined) {
      this.#accepted.set(n, [deliveryId])
      this.#order.push(n)
      this.#count++
    } else before.push(deliveryId)
  }

  async play(world: DrillWorld): Promise<Omit<RehearsalReport, 'prefix'>> {
    const { clock, note, events } = this.#options
    const checks: RehearsalCheck[] = []
    const check = (what: string, ok: boolean, found: string) => void checks.push({ what, ok, found })
    const range = (phase: number) => Array.from({ length: events }, (_, i) => phase * events + i)
    const elapsed = (sinceMs: number) => (clock.mono() - sinceMs) / 1_000

    note(`${events} events while everything runs`)
    const first = await world.startService()
    await world.produce(range(0))
    await this.#until(() => this.#count >= events)
    check('everything is delivered while all is well', this.#count === events, `${this.#count} of ${events}`)

    note('Stopping the service')
    await first.stop()
    note(`${events} events while nothing runs`)
    await world.produce(range(1))
    check('nothing is delivered while it is stopped', this.#count === events, `${this.#count - events} deliveries`)

    note('Starting it again')
    const startMs = clock.mono()
    const second = await world.startService()
    let firstDeliveryS: number | null = null
    const recovered = await this.#until(() => {
      if (firstDeliveryS === null && this.#count > events) firstDeliveryS = elapsed(startMs)
      return this.#count >= 2 * events
    })
    const recoveryS = recovered ? elapsed(startMs) : null
    check('the backlog is delivered', recovered, `${this.#count - events} of ${events}`)

    note(`${events} events that the endpoint rejects`)
    world.answer(400)
    await world.produce(range(2))
    let dead = 0
    await this.#until(async () => {
      dead = await world.dead()
      return dead >= events
    })
    check('what the endpoint rejects is kept as dead letters', dead === events, `${dead} of ${events}`)
    world.answer(200)
    note('Redriving them')
    const redriveMs = clock.mono()
    const { id } = await world.jobs.redrive({ subscription: 'rehearsal', why: 'rehearsal' })
    const redriven = await this.#until(() => this.#count >= 3 * events)
    const redriveS = redriven ? elapsed(redriveMs) : null
    await this.#until(async () => (await world.jobs.show(id)).state !== 'running')
    const { state, written } = await world.jobs.show(id)
    check('the redrive is done', state === 'done' && written === events, `${state}, ${written} written`)
    check('the dead are delivered', redriven, `${this.#count - 2 * events} of ${events}`)
    await second.stop()

    this.#judge(check, range(2))
    return {
      ok: checks.every(({ ok }) => ok),
      events,
      firstDeliveryS,
      recoveryS,
      recoveredPerSecond: recoveryS === null ? null : events / recoveryS,
      redriveS,
      checks,
    }
  }

  #judge(check: (what: string, ok: boolean, found: string) => void, rejected: readonly number[]): void {
    const twice = [...this.#accepted].filter(([, ids]) => ids.length > 1)
    check('nothing is delivered twice', twice.length === 0, `${twice.length} events`)
    const changed = rejected.filter((n) => {
      const before = this.#refused.get(n)
      return before?.size !== 1 || this.#accepted.get(n)?.[0] !== [...before][0]
    })
    check('the redriven have the ids that they had', changed.length === 0, `${changed.length} differ`)
    const lastOf = new Map<number, number>()
    let late = 0
    for (const n of this.#order) {
      if (n < (lastOf.get(n % 50) ?? -1)) late++
      lastOf.set(n % 50, n)
    }
    check('each key is in order', late === 0, `${late} out of order`)
    check('every request is signed', this.#unverified.length === 0, this.#unverified.slice(0, 3).join('; ') || 'all')
  }

  /** False: nothing has moved for a long time, so it will not come. */
  async #until(fact: () => boolean | Promise<boolean>): Promise<boolean> {
    const { clock, signal } = this.#options
    let seen = { count: -1, atMs: clock.mono() }
    while (!(await fact())) {
      signal.throwIfAborted()
      const moved = this.#count + this.#refused.size
      if (moved !== seen.count) seen = { count: moved, atMs: clock.mono() }
      else if (clock.mono() - seen.atMs > stalledMs) return false
      await new Promise<void>((resolve) => clock.after(50, resolve))
    }
    return true
  }
}

function numberOf(body: Buffer): number | null {
  try {
    const { n } = JSON.parse(body.toString()) as { n?: unknown }
    return typeof n === 'number' ? n : null
  } catch {
    return null
  }
}

const stalledMs = 60_000
