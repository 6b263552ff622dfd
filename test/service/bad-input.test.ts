import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { emptyHeaders, headerMap, type OutRecord } from '../../src/core/record.ts'
import { decodeRejected } from '../../src/schema/decode.ts'
import { stockKafkajs } from '../support/stock-kafkajs.ts'
import { createWorld, type Running, until, type World } from './world.ts'

interface StockProducer {
  connect(): Promise<void>
  disconnect(): Promise<void>
  send(batch: object): Promise<unknown>
}

let world: World
let service: Running
beforeAll(async () => {
  world = await createWorld({ env: { HOOKTIDE_ROUTER_MAX_EVENT_BYTES: '1KiB' } })
  await world.subscribe(world.subscription('s', world.endpoint.at('/s'), { ordering: 'key' }))
  service = await world.up()
})
afterAll(() => world?.close())

let n = 0
/** Shows, by a good event behind it in every partition, that nothing before it stands in the way. */
async function goesOn(): Promise<void> {
  const ids = Array.from({ length: world.eventPartitions }, (_, partition) => `after-${++n}-${partition}`)
  await world.append(...ids.map((id, partition) => ({ ...world.eventRecord({ id }), partition })))
  const bodies = () => new Set(world.endpoint.of('/s').map(({ body }) => body.toString()))
  await until('good events behind bad ones are delivered', () => ids.every((id) => bodies().has(id)), {
    seen: () => service.log.trouble.slice(-5),
  })
}

function raw(value: Buffer | string | null, headers: Record<string, string> = {}): OutRecord {
  const topic = world.config.topics.events[0] as string
  const bytes = typeof value === 'string' ? Buffer.from(value) : value
  return { topic, partition: 0, key: null, value: bytes, headers: headerMap(Object.entries(headers)) }
}

async function stock<T>(codecs: Record<number, unknown>, use: (producer: StockProducer) => Promise<T>): Promise<T> {
  const require = stockKafkajs()
  const kafkajs = require<{
    Kafka: new (options: object) => { producer(): StockProducer }
    CompressionCodecs: Record<number, unknown>
    Partitioners: { DefaultPartitioner: unknown }
  }>('')
  for (const [id, codec] of Object.entries(codecs)) kafkajs.CompressionCodecs[Number(id)] = codec
  const brokers = [...world.config.kafka.brokers]
  const producer = new kafkajs.Kafka({ brokers, logLevel: 0, clientId: 'foreign' }).producer()
  await producer.connect()
  try {
    return await use(producer)
  } finally {
    await producer.disconnect()
  }
}

test('every kind of bad event ends in `rejected` with code, reason and original bytes, and a line that says what to do; good ones between are delivered once', async () => {
  const bytes = randomBytes(300)
  const large = randomBytes(1500)
  const cases = [
    { record: raw(bytes), code: 'bad-json', says: /header event-type/ },
    { record: raw(null), code: 'null-value', says: /produce the event body as the value/ },
    { record: raw('{"hello":1}'), code: 'missing-type', says: /set header event-type/ },
    { record: raw(large, { 'event-type': 'a' }), code: 'too-large', says: /router\.maxEventBytes/ },
    { record: raw('x', { 'event-type': 'white space' }), code: 'bad-type', says: /use letters, digits/ },
    { record: raw('x', { 'event-type': 'a', 'event-tenant': '' }), code: 'bad-tenant', says: /use letters, digits/ },
    {
      record: raw('x', Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`h${i}`, 'v']))),
      code: 'too-many-headers',
      says: /router\.maxHeaders/,
    },
    { record: raw('{}', { ce_specversion: '1.0', ce_type: 'a' }), code: 'missing-attribute', says: /required/ },
  ]
  const good = Array.from({ length: cases.length }, (_, i) => world.eventRecord({ id: `between-${i}` }))
  // A good one of each shape: a bare JSON envelope without headers; a tenant nobody subscribed for.
  good.push(raw('{"type":"order.paid","id":"bare"}'), world.eventRecord({ id: 'nobody', tenant: 'stranger' }))
  for (const [i, { record }] of cases.entries()) await world.append({ ...(good[i] as OutRecord), partition: 0 }, record)
  await world.append(...good.slice(cases.length).map((record) => ({ ...record, partition: 0 })))
  await goesOn()

  const rejected = await world.read(world.topics.rejected)
  for (const { record, code, says } of cases) {
    const found = rejected.filter(
      (entry) => decodeRejected(entry).ok && String(entry.headers['ht-rejected-code']) === code,
    )
    expect([code, found.length]).toEqual([code, 1])
    const [entry] = found
    expect(entry?.value).toEqual(record.value)
    const decoded = decodeRejected(entry as NonNullable<typeof entry>)
    expect(decoded).toMatchObject({ ok: true, value: { code, topic: record.topic, partition: 0 } })
    for (const [name, value] of Object.entries(record.headers)) expect(entry?.headers[name]).toEqual(value)
    const lines = service.log.of('event.rejected', (line) => line.code === code)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatchObject({
      level: 'warn',
      topic: record.topic,
      partition: 0,
      reason: expect.stringMatching(says),
    })
  }
  const delivered = world.endpoint.of('/s').map(({ body }) => body.toString())
  for (let i = 0; i < cases.length; i++) expect(delivered.filter((body) => body === `between-${i}`)).toHaveLength(1)
  expect(delivered.filter((body) => body.includes('"bare"'))).toHaveLength(1)
  expect(delivered).not.toContain('nobody')
  const { text } = await service.page('/metrics')
  expect(text).toMatch(/hooktide_events_routed_total\{matched="none"\} 1\b/)
  expect(text).toMatch(/hooktide_events_rejected_total\{code="null-value"\} 1\b/)
})

test("a foreign producer's snappy batch is delivered; one that can't be unpacked goes to `rejected` by its place, and its partition goes on", async () => {
  const require = createRequire(import.meta.url)
  const { compress } = require('snappy') as { compress(data: Buffer): Promise<Buffer> }
  const topic = world.config.topics.events[0] as string
  const headers = { 'event-type': 'order.paid' }
  const snappy = () => ({
    compress: (encoder: { buffer: Buffer }) => compress(encoder.buffer),
    decompress: async () => {},
  })
  await stock({ 2: snappy }, async (producer) => {
    await producer.send({ topic, compression: 2, messages: [{ partition: 3, value: 'by snappy', headers }] })
    // 34 MiB in one batch of a few KiB: above what is unpacked.
    await producer.send({ topic, compression: 1, messages: [{ partition: 3, value: Buffer.alloc(34 << 20), headers }] })
    await producer.send({ topic, compression: 2, messages: [{ partition: 3, value: 'by snappy again', headers }] })
  })
  await goesOn()
  const bodies = world.endpoint.of('/s').map(({ body }) => body.toString())
  expect(bodies.filter((body) => body.startsWith('by snappy'))).toEqual(['by snappy', 'by snappy again'])
  const rejected = (await world.read(world.topics.rejected)).map(decodeRejected)
  const [bomb, ...others] = rejected.flatMap((entry) =>
    entry.ok && entry.value.code === 'undecodable' ? [entry.value] : [],
  )
  expect(others).toEqual([])
  expect(bomb).toMatchObject({ topic, partition: 3, offset: expect.any(Number) })
  expect(service.log.of('batch.undecodable')).toMatchObject([
    {
      level: 'error',
      topic,
      partition: 3,
      offset: bomb?.offset,
      reason: expect.stringMatching(/unpacks to more than/),
    },
  ])
})

test('bad records in the subscriptions topic are named in the log and change nothing: the last good version stays in force', async () => {
  const good = world.subscription('kept', world.endpoint.at('/kept'))
  await world.subscribe(good)
  const write = (key: string, value: string) => ({
    topic: world.topics.subscriptions,
    partition: 0,
    key,
    value: Buffer.from(value),
    headers: emptyHeaders,
  })
  await world.append(
    write('kept', '{"v":1,'),
    write('bad-url', JSON.stringify({ ...good, id: 'bad-url', url: 'ftp:/nowhere' })),
    write('newer', JSON.stringify({ ...good, id: 'newer', v: 99 })),
    write('other-key', JSON.stringify(good)),
  )
  // A URL that is well formed and may not be reached.
  await world.subscribe(world.subscription('inside', 'http://10.0.0.1/hook'))
  await world.produce({ id: 'for-kept' })
  await until('delivered to the last good version', () => world.endpoint.delivered('/kept').length === 1)
  const line = (id: string) => service.log.of('subscription.unreadable', (l) => l.subscriptionId === id)
  expect(line('kept')).toMatchObject([{ level: 'error', reason: expect.stringMatching(/JSON/) }])
  expect(line('bad-url')).toMatchObject([{ level: 'error', reason: expect.stringMatching(/url/) }])
  expect(line('newer')).toMatchObject([
    { level: 'error', reason: expect.stringMatching(/v \(99\) is unknown here; upgrade/) },
  ])
  expect(line('other-key')).toMatchObject([{ level: 'error', reason: expect.stringMatching(/key/) }])

  const [attempt] = await until('the attempt on a forbidden address', async () => {
    const found = await world.attempts('inside')
    return found.length > 0 && found
  })
  expect(attempt).toMatchObject({ outcome: 'blocked', settlement: 'dead', error: expect.stringMatching(/10\.0\.0\.1/) })
  const dead = await world.read(world.topics.dead)
  expect(dead.filter(({ key }) => key?.toString() === 'inside').map(({ value }) => value?.toString())).toEqual([
    'for-kept',
  ])
  await world.subscribe({ id: 'inside', subscription: null })
})

test('records in `deliveries` that are none, or of a newer version, go to `rejected` whole; the lane goes on', async () => {
  const put = (partition: number, value: string, headers: Record<string, string>) => ({
    topic: world.topics.deliveries,
    partition,
    key: 's',
    value: Buffer.from(value),
    headers: headerMap(Object.entries(headers)),
  })
  await world.append(
    put(0, 'no headers', {}),
    put(1, 'newer', { 'ht-v': '9', 'ht-id': 'x' }),
    put(1, 'half', { 'ht-v': '1', 'ht-id': 'y' }),
  )
  await goesOn()
  const found = await until('three in rejected', async () => {
    const all = (await world.read(world.topics.rejected)).map((entry) => ({ entry, decoded: decodeRejected(entry) }))
    const mine = all.filter(({ decoded }) => decoded.ok && decoded.value.topic === world.topics.deliveries)
    return mine.length === 3 && mine
  })
  const byValue = new Map(found.map(({ entry, decoded }) => [entry.value?.toString(), { entry, decoded }]))
  expect(byValue.get('no headers')?.decoded).toMatchObject({
    value: { code: 'delivery.unreadable', reason: expect.stringMatching(/not a delivery/) },
  })
  expect(byValue.get('newer')?.decoded).toMatchObject({
    value: { reason: expect.stringMatching(/version 9; upgrade/) },
  })
  expect(byValue.get('newer')?.entry.headers['ht-id']?.toString()).toBe('x')
  expect(byValue.get('half')?.decoded).toMatchObject({ value: { reason: expect.stringMatching(/ht-sub is missing/) } })
  expect(service.log.of('delivery.unreadable')).toHaveLength(3)
})

test('a batch in `deliveries` that can not be unpacked goes to `rejected` by its place; the lane goes on', async () => {
  const topic = world.topics.deliveries
  await stock({}, async (producer) => {
    await producer.send({ topic, compression: 1, messages: [{ partition: 1, value: Buffer.alloc(34 << 20) }] })
  })
  await goesOn()
  const found = await until('in rejected', async () => {
    const all = (await world.read(world.topics.rejected)).map(decodeRejected)
    return all.find((entry) => entry.ok && entry.value.topic === topic && entry.value.code === 'undecodable')
  })
  expect(found).toMatchObject({
    ok: true,
    value: { partition: 1, reason: expect.stringMatching(/unpacks to more than/) },
  })
  const lines = service.log.of('batch.undecodable', (line) => line.topic === topic)
  expect(lines).toMatchObject([
    { level: 'error', partition: 1, remedy: expect.stringMatching(/Only Hooktide may write/) },
  ])
})

test('broken records in control, secrets and lane-state are named in the log and stop nothing', async () => {
  const write = (topic: string, key: string, value: string) => ({
    topic,
    partition: 0,
    key,
    value: Buffer.from(value),
    headers: emptyHeaders,
  })
  await world.append(
    write(world.topics.control, 'tier:x', 'nonsense'),
    write(world.topics.control, 'tier:y', '{"v":7}'),
    write(world.topics.secrets, 'k1', 'nonsense'),
    write(world.topics.laneState, 'line:z', 'nonsense'),
  )
  await until(
    'named in the log',
    () => service.log.of('control.unreadable').length === 2 && service.log.of('secret.unreadable').length === 1,
  )
  expect(service.log.of('control.unreadable')).toMatchObject([
    { level: 'error', key: 'tier:x', reason: expect.stringMatching(/JSON/) },
    { level: 'error', key: 'tier:y', reason: expect.stringMatching(/upgrade/) },
  ])
  // Read when a lane is gained, so a second process meets it.
  const before = service.log.of('lane.gained').length
  await service.stop()
  world.running.splice(0)
  service = await world.up()
  expect(before).toBeGreaterThan(0)
  await until('the lane is gained all the same', () => service.log.of('lane.gained').length >= 2)
  expect(service.log.of('lane_state.unreadable')).toMatchObject([{ level: 'error', key: 'line:z' }])
  await goesOn()
  const { status } = await service.page('/healthz')
  expect(status).toBe(200)
  expect(service.fatal).toEqual([])
})
