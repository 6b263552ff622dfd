import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import { catalogue, defaultBuckets, exportedName, type MetricEntry } from './catalogue.ts'
import { redact } from './redact.ts'

/** Different values one label may take before the rest is `other`: a metric must never grow with the traffic. */
const maxLabelValues = 100
const maxLabelChars = 80

export type Labels = Readonly<Record<string, string>>

/** Counters and timers of the catalogue, made when they are first used. */
export class Metrics {
  readonly registry = new Registry()
  readonly #counters = new Map<string, Counter>()
  readonly #timers = new Map<string, Histogram>()
  readonly #labelValues = new Map<string, Set<string>>()

  constructor(options: { readonly processMetrics: boolean }) {
    if (options.processMetrics) collectDefaultMetrics({ register: this.registry })
  }

  /** False: there is no such counter in the catalogue. */
  count(name: string, n: number, labels: Labels): boolean {
    const entry = catalogue[name]
    if (entry?.kind !== 'counter') return this.#unknown()
    if (!(n >= 0) || !Number.isFinite(n)) return true
    this.#counter(name, entry).inc(this.#bounded(name, entry, labels), n)
    return true
  }

  time(name: string, ms: number, labels: Labels): boolean {
    const entry = catalogue[name]
    if (entry?.kind !== 'timer') return this.#unknown()
    if (!Number.isFinite(ms)) return true
    this.#timer(name, entry).observe(this.#bounded(name, entry, labels), Math.max(0, ms) / 1000)
    return true
  }

  #unknown(): false {
    this.#counter('unknown_metrics', catalogue.unknown_metrics as MetricEntry).inc()
    return false
  }

  #counter(name: string, entry: MetricEntry): Counter {
    let counter = this.#counters.get(name)
    if (counter === undefined) {
      counter = new Counter({
        name: exportedName(name, 'counter'),
        help: entry.help,
        labelNames: [...(entry.labels ?? [])],
        registers: [this.registry],
      })
      this.#counters.set(name, counter)
    }
    return counter
  }

  #timer(name: string, entry: MetricEntry): Histogram {
    let timer = this.#timers.get(name)
    if (timer === undefined) {
      timer = new Histogram({
        name: exportedName(name, 'timer'),
        help: entry.help,
        labelNames: [...(entry.labels ?? [])],
        buckets: [...(entry.buckets ?? defaultBuckets)],
        registers: [this.registry],
      })
      this.#timers.set(name, timer)
    }
    return timer
  }

  /** Only labels of the catalogue, all of them, with a bounded number of values. */
  #bounded(name: string, entry: MetricEntry, labels: Labels): Record<string, string> {
    const bounded: Record<string, string> = {}
    for (const label of entry.labels ?? []) {
      const value = redact(String(labels[label] ?? '')).slice(0, maxLabelChars)
      const key = `${name} ${label}`
      let seen = this.#labelValues.get(key)
      if (seen === undefined) {
        seen = new Set()
        this.#labelValues.set(key, seen)
      }
      if (seen.has(value) || seen.size < maxLabelValues) {
        seen.add(value)
        bounded[label] = value
      } else bounded[label] = 'other'
    }
    return bounded
  }
}
