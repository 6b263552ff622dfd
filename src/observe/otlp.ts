import type { SpanName } from '../ports/tracer.ts'
import type { Fields } from '../ports.ts'

/** A span that has ended. Times in epoch µs. */
export interface EndedSpan {
  readonly name: SpanName
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string | null
  readonly startUs: number
  readonly endUs: number
  readonly fields: Fields
  readonly error: string | null
}

/** Kinds of OTLP: a POST is a CLIENT's, an event that is taken a CONSUMER's. */
const kinds: Readonly<Record<SpanName, number>> = { attempt: 3, route: 5 }
const statusError = 2

/** An ExportTraceServiceRequest in OTLP's JSON encoding (opentelemetry-proto 1.x: ids in hex, 64-bit numbers as text). */
export function encodeSpans(spans: readonly EndedSpan[], resource: Fields, version: string): string {
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: attributes(resource) },
        scopeSpans: [{ scope: { name: 'hooktide', version }, spans: spans.map(encodeSpan) }],
      },
    ],
  })
}

function encodeSpan({ name, traceId, spanId, parentId, startUs, endUs, fields, error }: EndedSpan): object {
  return {
    traceId,
    spanId,
    ...(parentId === null ? {} : { parentSpanId: parentId }),
    name,
    kind: kinds[name],
    startTimeUnixNano: `${Math.round(startUs)}000`,
    endTimeUnixNano: `${Math.round(endUs)}000`,
    attributes: attributes(fields),
    ...(error === null ? {} : { status: { code: statusError, message: error } }),
  }
}

function attributes(fields: Fields): object[] {
  return Object.entries(fields).flatMap(([key, value]) =>
    value === null || value === undefined ? [] : [{ key, value: anyValue(value) }],
  )
}

function anyValue(value: string | number | boolean): object {
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'string') return { stringValue: value }
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}
