import { formatTraceparent, parseTraceparent, randomHex } from '../core/trace-context.ts'
import type { Span, SpanName, Tracer } from '../ports/tracer.ts'
import type { Clock, Fields } from '../ports.ts'
import type { EndedSpan } from './otlp.ts'
import { redactFields } from './redact.ts'

export interface TracerOptions {
  readonly clock: Clock
  /** Of traces that begin here, how many are recorded, 0 to 1. Others are as their `traceparent` says. */
  readonly sampleRatio: number
  ended(span: EndedSpan): void
}

/** Spans by W3C Trace Context: same trace, new span id, the parent's decision whether it is recorded. */
export function createTracer({ clock, sampleRatio, ended }: TracerOptions): Tracer {
  const random = () => clock.random()
  return {
    start(name: SpanName, parentText: string | null, fields: Fields): Span | null {
      const parent = parentText === null ? null : parseTraceparent(parentText)
      if (parent === null ? random() >= sampleRatio : !parent.sampled) return null
      const traceId = parent?.traceId ?? randomHex(16, random)
      const spanId = randomHex(8, random)
      const startUs = clock.now() * 1_000
      const startedMs = clock.mono()
      let open = true
      return {
        traceparent: formatTraceparent({ traceId, spanId, sampled: true }),
        end(more, error) {
          if (!open) return
          open = false
          const endUs = startUs + Math.max(0, clock.mono() - startedMs) * 1_000
          const span = { name, traceId, spanId, parentId: parent?.spanId ?? null, startUs, endUs }
          ended({ ...span, fields: redactFields({ ...fields, ...more }), error: error ?? null })
        },
      }
    },
  }
}
