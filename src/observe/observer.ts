import { pino } from 'pino'
import { type Lag, mergeVitals, type Vitals } from '../core/vitals.ts'
import type { Clock, Fields, Level, Observer } from '../ports.ts'
import { LagPoll } from './lag-poll.ts'
import { type Labels, Metrics } from './metrics.ts'
import { prettyLine } from './pretty.ts'
import { redact, redactFields } from './redact.ts'
import { VitalGauges } from './vital-gauges.ts'

export interface LogStream {
  write(line: string): unknown
  on?(event: 'error', listener: (error: Error) => void): unknown
  readonly isTTY?: boolean | undefined
}

export interface ObserverOptions {
  readonly clock: Clock
  readonly stream: LogStream
  readonly level?: Level | 'silent'
  /** `auto`: for people on a terminal, else one JSON object a line. */
  readonly format?: 'auto' | 'json' | 'pretty'
  /** Stands on every line: instance, version. */
  readonly base?: Fields
  /** CPU, memory, event loop of the process, as prom-client measures them. Default true. */
  readonly processMetrics?: boolean
  readonly lagEveryMs?: number
}

/** The observer with what its owner needs besides: vital signs, the page for Prometheus, an end. */
export interface ProcessObserver extends Observer {
  /** Called at each scrape and for `vitals`; must be quick. Several add up. Returns what takes it off again. */
  registerVitals(read: () => Partial<Vitals>): () => void
  /** Asked every `lagEveryMs` (10 s). */
  registerLag(ask: () => Promise<readonly Lag[]>): () => void
  vitals(): Vitals
  /** Prometheus text format, version 0.0.4. */
  metrics(): Promise<{ readonly contentType: string; readonly body: string }>
  close(): void
}

/** Fields may not pass for the line's own keys. */
const ownKeys: ReadonlySet<string> = new Set(['level', 'time', 'event'])

export function createObserver(options: ObserverOptions): ProcessObserver {
  const { clock, stream, lagEveryMs = 10_000 } = options
  const pretty = options.format === 'pretty' || (options.format !== 'json' && stream.isTTY === true)
  const colour = stream.isTTY === true
  // A closed pipe must not end the process: who reads the log may go before us.
  stream.on?.('error', () => {})
  const logger = pino(
    {
      level: options.level ?? 'info',
      base: redactFields(options.base ?? {}),
      messageKey: 'event',
      timestamp: createTimestamp(clock),
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => stream.write(pretty ? prettyLine(line, colour) : line) },
  )
  const metrics = new Metrics({ processMetrics: options.processMetrics ?? true })
  const gauges = new VitalGauges(metrics.registry, clock)
  const readers = new Set<() => Partial<Vitals>>()
  const polls = new Set<LagPoll>()
  const reported = new Set<string>()

  const write = (level: Level, name: string, fields: Fields) => {
    const clean: Record<string, unknown> = {}
    for (const [key, value] of Object.entries(redactFields(fields))) clean[ownKeys.has(key) ? `${key}_` : key] = value
    logger[level](clean, redact(name))
  }
  /** Watching must not hurt what is watched. */
  const harmless = (work: () => void) => {
    try {
      work()
    } catch {
      // Nowhere is left to tell it.
    }
  }
  const missing = (name: string) => {
    if (reported.size >= 100 || reported.has(name)) return
    reported.add(name)
    write('error', 'metric.unknown', { metric: name })
  }
  const read = (): Vitals => {
    const parts: Partial<Vitals>[] = [...polls].map((poll) => ({ lag: poll.latest }))
    for (const reader of readers) harmless(() => parts.push(reader()))
    return mergeVitals(parts)
  }
  const observer: ProcessObserver = {
    log: (level, name, fields = {}) => harmless(() => write(level, name, fields)),
    // Called thousands of times a second: no closure is made for it.
    count: (name, n = 1, labels: Labels = noLabels) => {
      try {
        if (!metrics.count(name, n, labels)) missing(name)
      } catch {
        // As `harmless`.
      }
    },
    time: (name, ms, labels: Labels = noLabels) => {
      try {
        if (!metrics.time(name, ms, labels)) missing(name)
      } catch {
        // As `harmless`.
      }
    },
    registerVitals(reader) {
      readers.add(reader)
      return () => readers.delete(reader)
    },
    registerLag(ask) {
      const poll = new LagPoll(ask, { clock, observer, everyMs: lagEveryMs })
      polls.add(poll)
      return () => {
        poll.stop()
        polls.delete(poll)
      }
    },
    vitals: read,
    async metrics() {
      gauges.set(read())
      return { contentType: metrics.registry.contentType, body: await metrics.text() }
    },
    close() {
      for (const poll of polls) poll.stop()
      polls.clear()
      readers.clear()
      metrics.registry.clear()
    },
  }
  return observer
}

const noLabels: Labels = Object.freeze({})

/** Formatting a date costs more than the rest of a line; many lines fall into one millisecond. */
function createTimestamp(clock: Clock): () => string {
  let atMs = Number.NaN
  let text = ''
  return () => {
    const now = Math.floor(clock.now())
    if (now !== atMs) {
      atMs = now
      text = `,"time":"${new Date(now).toISOString()}"`
    }
    return text
  }
}
