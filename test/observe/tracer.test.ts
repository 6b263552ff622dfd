import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseTraceparent } from '../../src/core/trace-context.ts'
import type { EndedSpan } from '../../src/observe/otlp.ts'
import { SpanExporter } from '../../src/observe/span-exporter.ts'
import { createTracer } from '../../src/observe/tracer.ts'
import { FakeClock } from '../sim/fake-clock.ts'
import { realClock } from '../support/clock.ts'
import { Collector } from './collector.ts'

const parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

describe('spans', () => {
  const clock = new FakeClock({ startMs: 1_000_000 })
  const ended: EndedSpan[] = []
  const tracer = (sampleRatio = 1) => createTracer({ clock, sampleRatio, ended: (span) => ended.push(span) })
  beforeEach(() => void ended.splice(0))

  it('are of the parent’s trace, with an id of their own, and end once', async () => {
    const span = tracer().start('attempt', parent, { a: 1 })
    await clock.advance(250)
    span?.end({ b: 'x' }, '503')
    span?.end({})
    expect(ended).toHaveLength(1)
    expect(ended[0]).toMatchObject({
      name: 'attempt',
      traceId: '0af7651916cd43dd8448eb211c80319c',
      parentId: 'b7ad6b7169203331',
      startUs: 1_000_000_000,
      endUs: 1_000_250_000,
      fields: { a: 1, b: 'x' },
      error: '503',
    })
    expect(ended[0]?.spanId).not.toBe('b7ad6b7169203331')
    expect(span?.traceparent).toBe(`00-0af7651916cd43dd8448eb211c80319c-${ended[0]?.spanId}-01`)
  })

  it('follow the parent’s decision, whatever the ratio', () => {
    expect(tracer(1).start('attempt', parent.replace(/01$/, '00'), {})).toBeNull()
    expect(tracer(0).start('attempt', parent, {})).not.toBeNull()
  })

  it.each([null, 'nonsense'])('begin a trace of their own where the parent is %s, at the ratio', (text) => {
    expect(tracer(0).start('route', text, {})).toBeNull()
    const span = tracer(1).start('route', text, {})
    span?.end({})
    expect(ended[0]?.parentId).toBeNull()
    expect(parseTraceparent(span?.traceparent ?? '')).toMatchObject({ sampled: true })
  })

  it('carry no secret', () => {
    tracer().start('attempt', parent, { token: 'hunter2', url: 'https://u:hunter2@h/?hunter2' })?.end({}, 'x')
    expect(JSON.stringify(ended)).not.toContain('hunter2')
  })
})

describe('the exporter', () => {
  let collector: Collector
  beforeEach(async () => {
    collector = await new Collector().start()
  })
  afterEach(() => collector.stop())

  const span: EndedSpan = {
    name: 'attempt',
    traceId: 'a'.repeat(32),
    spanId: 'b'.repeat(16),
    parentId: null,
    startUs: 1_000_000,
    endUs: 1_000_500,
    fields: { text: 't', whole: 3, part: 0.5, yes: true, none: null },
    error: 'timeout',
  }

  function exporter(url: string, authorization: string | null = null) {
    const counts: Record<string, number> = {}
    const lines: string[] = []
    const observer = {
      log: (_: string, name: string) => void lines.push(name),
      count(name: string, n = 1) {
        counts[name] = (counts[name] ?? 0) + n
      },
      time: () => undefined,
    }
    const made = new SpanExporter({
      ...{ url, authorization, clock: realClock, observer },
      resource: { 'service.name': 'hooktide' },
      version: '1',
    })
    return { made, counts, lines }
  }

  it('sends what OTLP/HTTP asks for in JSON, all of it at the end at the latest', async () => {
    const { made, counts } = exporter(collector.url, 'Bearer t')
    for (let i = 0; i < 1_000; i++) made.add(span)
    await made.close()
    expect(collector.spans).toHaveLength(1_000)
    expect(counts).toEqual({ spans_exported: 1_000, spans_dropped: 0 })
    expect(collector.requests[0]).toEqual({ authorization: 'Bearer t', service: 'hooktide', status: 200 })
    expect(collector.spans[0]).toEqual({
      name: 'attempt',
      traceId: 'a'.repeat(32),
      spanId: 'b'.repeat(16),
      kind: 3,
      startTimeUnixNano: '1000000000',
      endTimeUnixNano: '1000500000',
      status: { code: 2, message: 'timeout' },
      fields: { text: 't', whole: 3, part: 0.5, yes: true },
    })
  })

  it('sends again what a collector was too busy for, and drops what it refuses', async () => {
    const { made, counts, lines } = exporter(collector.url)
    collector.answers.push(503)
    made.add(span)
    await expect.poll(() => collector.spans.length, { timeout: 10_000 }).toBe(1)
    collector.answers.push(400)
    made.add(span)
    await expect.poll(() => counts.spans_dropped, { timeout: 10_000 }).toBe(1)
    await made.close()
    expect(collector.spans).toHaveLength(1)
    expect(lines).toEqual(['traces.export_failed', 'traces.recovered', 'traces.export_failed'])
  })

  it('holds a bounded number while the collector is away, counts the rest, and ends all the same', async () => {
    const { url } = collector
    await collector.stop()
    const { made, counts } = exporter(url)
    for (let i = 0; i < 10_000; i++) made.add(span)
    await made.close()
    expect(counts.spans_dropped).toBe(10_000)
    collector = await new Collector().start()
  })
})
