import type { Pipeline } from '../pipeline/assemble.ts'
import type { Clock } from '../ports.ts'

export interface HealthLimits {
  /** Longest a ready delivery may wait while nothing at all is settled, ms. */
  readonly stalledMs: number
  /** Longest a lane may take to be gained, ms. */
  readonly gainingMs: number
  /** Without a confirmation of our membership for so long, ms, Kafka is away: nothing may start, and no restart would change it. */
  readonly leaseMs: number
  /** But not for ever: a process that never finds back is no use either. */
  readonly outageMs: number
}

/** Says when consumption has stopped although work is there: the one thing a restart can mend. */
export class PipelineHealth {
  readonly #pipeline: Pipeline
  readonly #clock: Clock
  readonly #limits: HealthLimits
  #settled = 0
  #movedAtMs: number
  #gainingSinceMs: number | null = null
  #acknowledged = 0
  #routedAtMs: number

  constructor(pipeline: Pipeline, clock: Clock, limits: HealthLimits) {
    this.#pipeline = pipeline
    this.#clock = clock
    this.#limits = limits
    this.#movedAtMs = clock.mono()
    this.#routedAtMs = clock.mono()
  }

  /** Ms without a confirmation of our membership; null: it is confirmed, or there is none to confirm. */
  get awayMs(): number | null {
    const ageMs = this.#pipeline.leaseAgeMs()
    return ageMs > this.#limits.leaseMs ? ageMs : null
  }

  /** Asked by probes and, so that a stall is noticed without them, every few seconds. */
  check(): { ok: boolean; reasons: string[] } {
    const now = this.#clock.mono()
    const { executor, deliverer } = this.#pipeline
    const leaseAgeMs = this.#pipeline.leaseAgeMs()
    if (leaseAgeMs > this.#limits.leaseMs) return this.#away(now, leaseAgeMs)
    const reasons: string[] = []
    if (executor.completed !== this.#settled || executor.startable === 0) {
      this.#settled = executor.completed
      this.#movedAtMs = now
    }
    const stalledMs = now - this.#movedAtMs
    if (stalledMs > this.#limits.stalledMs) {
      reasons.push(
        `${executor.startable} deliveries are ready and none has been settled for ${Math.round(stalledMs / 1000)} s`,
      )
    }
    const gaining = [...(deliverer?.lanes ?? [])].filter((runner) => runner.status === 'gaining').length
    if (gaining === 0) this.#gainingSinceMs = null
    else this.#gainingSinceMs ??= now
    const gainingMs = this.#gainingSinceMs === null ? 0 : now - this.#gainingSinceMs
    if (gainingMs > this.#limits.gainingMs) {
      reasons.push(
        `${gaining} lanes can not be taken over since ${Math.round(gainingMs / 1000)} s: see lane.gain_failed in the log`,
      )
    }
    const stuckMs = now - this.#routedAt(now)
    if (stuckMs > this.#limits.stalledMs) {
      reasons.push(
        `events wait and the router has written none for ${Math.round(stuckMs / 1000)} s: see router.write_failed and router.gain_failed in the log`,
      )
    }
    return { ok: reasons.length === 0, reasons }
  }

  #away(now: number, leaseAgeMs: number): { ok: boolean; reasons: string[] } {
    this.#movedAtMs = now
    this.#routedAtMs = now
    this.#gainingSinceMs = null
    const ok = leaseAgeMs <= this.#limits.outageMs
    const seconds = Math.round(leaseAgeMs / 1000)
    return { ok, reasons: ok ? [] : [`Kafka has not confirmed our membership for ${seconds} s: is it reachable?`] }
  }

  /** When the router last went on, or had nothing to do. */
  #routedAt(now: number): number {
    const { router } = this.#pipeline
    const streams = [...(router?.streams ?? [])]
    const acknowledged = streams.reduce((sum, stream) => sum + stream.acknowledged, 0)
    const waits = (router?.preparing ?? 0) > 0 || streams.some((stream) => stream.waitingRecords > 0)
    if (!waits || acknowledged !== this.#acknowledged) {
      this.#acknowledged = acknowledged
      this.#routedAtMs = now
    }
    return this.#routedAtMs
  }
}

/** Ready: started, and known to Kafka now. */
export function readiness(phase: string, health: PipelineHealth | null): { ok: boolean; reasons: string[] } {
  if (phase !== 'running') return { ok: false, reasons: [phase] }
  const awayMs = health?.awayMs ?? null
  if (awayMs === null) return { ok: true, reasons: [] }
  return { ok: false, reasons: [`Kafka has not confirmed our membership for ${Math.round(awayMs / 1000)} s`] }
}
