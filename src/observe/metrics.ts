import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import { catalogue, defaultBuckets, exportedName, type MetricEntry } from './catalogue.ts'
import { redact } from './redact.ts'

/** Different values one label may take before the rest is `other`: a metric must never grow with the traffic. */
const maxLabelValues = 100
const maxLabelChars = 80
const maxChildren = 5_000

export type Labels = Readonly<Record<string, string>>

/**
 * Counters and timers of the catalogue. Each is there from the start, at zero where it has no labels: an alert on a rate
 * must see the first increment, and a dashboard the names.
 */
export class Metrics {
  readonly registry = new Registry()
  readonly #counters = new Map<string, Counter>()
  readonly #timers = new Map<string, Histogram>()
  readonly #labelValues = new Map<string, Set<string>>()
  /** By raw labels: cleaning and hashing them costs more than counting. */
  readonly #counterChildren = new Map<string, Counter.Internal>()
  readonly #timerChildren = new Map<string, Histogram.Internal<string>>()

  constructor(options: { readonly processMetrics: boolean }) {
    if (options.processMetrics) collectDefaultMetrics({ register: this.registry })
    for (const [name, entry] of Object.entries(catalogue)) {
      if (entry.kind === 'counter') {
        this.#counter(name, entry)
        for (const labels of entry.start ?? []) this.count(name, 0, labels)
      } else this.#timer(name, entry)
    }
  }

  /** False: there is no such counter in the catalogue. */
  count(name: string, n: number, labels: Labels): boolean {
    const entry = catalogue[name]
    if (entry?.kind !== 'counter') return this.#unknown()
    if (!(n >= 0) || !Number.isFinite(n)) return true
    const key = keyOf(name, entry, labels)
    let child = this.#counterChildren.get(key)
    if (child === undefined) {
      child = this.#counter(name, entry).labels(this.#bounded(name, entry, labels))
      if (this.#counterChildren.size < maxChildren) this.#counterChildren.set(key, child)
    }
    child.inc(n)
    return true
  }

  time(name: string, ms: number, labels: Labels): boolean {
    const entry = catalogue[name]
    if (entry?.kind !== 'timer') return this.#unknown()
    if (!Number.isFinite(ms)) return true
    const key = keyOf(name, entry, labels)
    let child = this.#timerChildren.get(key)
    if (child === undefined) {
      child = this.#timer(name, entry).labels(this.#bounded(name, entry, labels))
      if (this.#timerChildren.size < maxChildren) this.#timerChildren.set(key, child)
    }
    child.observe(Math.max(0, ms) / 1000)
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

function keyOf(name: string, entry: MetricEntry, labels: Labels): string {
  let key = name
  for (const label of entry.labels ?? []) key += `\0${labels[label] ?? ''}`
  return key
}
