import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import { catalogue, defaultBuckets, exportedName, type MetricEntry } from './catalogue.ts'
import { Children } from './children.ts'
import { redact } from './redact.ts'

/** Different values one label may take before the rest is `other`: a metric must never grow with the traffic. */
const maxLabelValues = 100
const maxLabelChars = 80
const maxChildren = 5_000

/** Thousands a second: what is counted waits here until somebody looks. */
interface Count {
  readonly child: Counter.Internal
  n: number
}

/** As `Count`; in a row they cost a fraction of one by one. */
interface Times {
  readonly child: Histogram.Internal<string>
  readonly seconds: number[]
}

const mostWaiting = 250

function observe({ child, seconds }: Times): void {
  for (const value of seconds) child.observe(value)
  seconds.length = 0
}

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
  readonly #counts = new Map<string, Children<Count>>()
  readonly #times = new Map<string, Children<Times>>()
  /** What waits for the next `text`. */
  readonly #uncounted = new Set<Count>()
  readonly #unobserved = new Set<Times>()

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
    let known = this.#counts.get(name)
    if (known === undefined) {
      known = new Children(entry, maxChildren)
      this.#counts.set(name, known)
    }
    let count = known.get(labels)
    if (count === undefined) {
      count = { child: this.#counter(name, entry).labels(this.#bounded(name, entry, labels)), n: 0 }
      known.set(labels, count)
      count.child.inc(0)
    }
    count.n += n
    this.#uncounted.add(count)
    return true
  }

  time(name: string, ms: number, labels: Labels): boolean {
    const entry = catalogue[name]
    if (entry?.kind !== 'timer') return this.#unknown()
    if (!Number.isFinite(ms)) return true
    let known = this.#times.get(name)
    if (known === undefined) {
      known = new Children(entry, maxChildren)
      this.#times.set(name, known)
    }
    let times = known.get(labels)
    if (times === undefined) {
      times = { child: this.#timer(name, entry).labels(this.#bounded(name, entry, labels)), seconds: [] }
      known.set(labels, times)
    }
    if (times.seconds.push(Math.max(0, ms) / 1000) >= mostWaiting) observe(times)
    else this.#unobserved.add(times)
    return true
  }

  /** In the exposition format. */
  text(): Promise<string> {
    for (const count of this.#uncounted) {
      count.child.inc(count.n)
      count.n = 0
    }
    this.#uncounted.clear()
    for (const times of this.#unobserved) observe(times)
    this.#unobserved.clear()
    return this.registry.metrics()
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
