import { afterAll, beforeAll, expect, test } from 'vitest'
import { Collector } from '../observe/collector.ts'
import { createWorld, until, type World } from './world.ts'

let world: World
let collector: Collector
beforeAll(async () => {
  collector = await new Collector().start()
  world = await createWorld({ env: { HOOKTIDE_OBSERVE_TRACES_URL: collector.url } })
  await world.up()
})
afterAll(async () => {
  await world?.close()
  await collector?.stop()
})

const traceId = '0af7651916cd43dd8448eb211c80319c'
const eventSpan = 'b7ad6b7169203331'

function event(id: string, type: string, traceparent: string | null) {
  const record = world.eventRecord({ id, type })
  if (traceparent === null) return record
  return { ...record, headers: { ...record.headers, traceparent: Buffer.from(traceparent) } }
}

test('every attempt is a span of the event’s trace, child of what the event brought, and its own id is what the endpoint gets', async () => {
  const url = world.endpoint.at('/twice', (_, nth) => ({ status: nth === 1 ? 503 : 200 }))
  await world.subscribe(world.subscription('twice', url, { types: ['traced'] }))
  await world.append(event('e1', 'traced', `00-${traceId}-${eventSpan}-01`))
  await until('it is delivered', () => world.endpoint.delivered('/twice').length === 1)
  const spans = await until('all is exported', () => {
    const found = collector.spans.filter((span) => span.traceId === traceId)
    return found.length === 3 && found
  })
  const of = (name: string) => spans.filter((span) => span.name === name)
  expect(spans.map(({ parentSpanId }) => parentSpanId)).toEqual([eventSpan, eventSpan, eventSpan])
  expect(of('route')).toMatchObject([{ kind: 5, fields: { 'hooktide.event.id': 'e1', 'hooktide.deliveries': 1 } }])
  const attempts = of('attempt').sort(
    (a, b) => Number(a.fields['hooktide.attempt']) - Number(b.fields['hooktide.attempt']),
  )
  expect(attempts).toMatchObject([
    { kind: 3, status: { code: 2 }, fields: { 'http.response.status_code': 503, 'hooktide.outcome': 'retryable' } },
    { kind: 3, fields: { 'http.response.status_code': 200, 'hooktide.outcome': 'delivered' } },
  ])
  expect(world.endpoint.of('/twice').map(({ headers }) => headers.traceparent)).toEqual(
    attempts.map(({ spanId }) => `00-${traceId}-${spanId}-01`),
  )
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(3)
})

test('an event without a traceparent begins a trace: its attempts are children of its routing', async () => {
  await world.subscribe(world.subscription('root', world.endpoint.at('/root'), { types: ['root'] }))
  await world.append(event('e2', 'root', null))
  await until('it is delivered', () => world.endpoint.delivered('/root').length === 1)
  const mine = () => collector.spans.filter(({ fields }) => fields['hooktide.event.id'] === 'e2')
  const spans = await until('all is exported', () => mine().length === 2 && mine())
  const [route, attempt] = ['route', 'attempt'].map((name) => spans.find((span) => span.name === name))
  expect(route?.parentSpanId).toBeUndefined()
  expect(attempt).toMatchObject({ traceId: route?.traceId, parentSpanId: route?.spanId })
})

test('a trace that is not sampled is not recorded, and goes on to the endpoint as it came', async () => {
  const unsampled = `00-${'c'.repeat(32)}-${eventSpan}-00`
  await world.subscribe(world.subscription('quiet', world.endpoint.at('/quiet'), { types: ['quiet'] }))
  await world.append(event('e3', 'quiet', unsampled))
  await until('it is delivered', () => world.endpoint.delivered('/quiet').length === 1)
  expect(world.endpoint.of('/quiet')[0]?.headers.traceparent).toBe(unsampled)
  // Something that is exported after it.
  await world.append(event('e4', 'root', null))
  await until('a later one is exported', () =>
    collector.spans.some(({ fields }) => fields['hooktide.event.id'] === 'e4'),
  )
  expect(collector.spans.filter(({ traceId: id }) => id === 'c'.repeat(32))).toEqual([])
})
