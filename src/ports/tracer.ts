import type { Fields } from '../ports.ts'

/** Spans for a trace collector. Never throws, never waits. Where nothing is traced there is none: nobody asks then. */
export interface Tracer {
  /**
   * Begins a span below `parent` (a `traceparent`, W3C Trace Context). Null: it is not recorded (its trace is not sampled), and what is
   * passed on is `parent` as it came. Without a parent a trace of its own begins, if it is among those that are sampled.
   */
  start(name: SpanName, parent: string | null, fields: Fields): Span | null
}

/** `route`: an event becomes deliveries; `attempt`: one POST. */
export type SpanName = 'route' | 'attempt'

export interface Span {
  /** Of this span: what is done below it is its child. */
  readonly traceparent: string
  /** Once. `error`: it failed, in one short line. */
  end(fields: Fields, error?: string): void
}
