import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { claimFor, claimHeader, encodeClaim } from '../../src/core/claim.ts'
import { hooktide } from '../cli/support.ts'
import { createWorld, type Running, until, type World } from './world.ts'

let world: World
let service: Running
let store: string
beforeAll(async () => {
  store = await mkdtemp(join(tmpdir(), 'hooktide-claims-'))
  world = await createWorld({ env: { HOOKTIDE_OBJECTS_DIRECTORY: store } })
  service = await world.up()
})
afterAll(async () => {
  await world?.close()
  await rm(store, { recursive: true, force: true })
})

/** Larger than an event may be. */
const large = JSON.stringify({ id: 'r1', pad: 'x'.repeat(600_000) })

async function produce(text: string, ...args: string[]): Promise<void> {
  const file = join(store, 'input.json')
  await writeFile(file, text)
  const { code, err } = await hooktide(['produce', ...args, file], { env: world.env })
  expect([code, err]).toEqual([0, expect.any(String)])
}

function pointing(id: string, key: string, body = large): Parameters<World['append']>[0] {
  const record = world.eventRecord({ id, type: 'report', body: '' })
  const claim = { ...claimFor(Buffer.from(body), 0), key }
  return { ...record, headers: { ...record.headers, [claimHeader]: Buffer.from(encodeClaim(claim)) } }
}

test('a body larger than a record is delivered whole and signed; the log holds a pointer; a transformation sees it', async () => {
  await world.subscribe(world.subscription('whole', world.endpoint.at('/whole'), { types: ['report'] }))
  await world.subscribe(
    world.subscription('part', world.endpoint.at('/part'), {
      types: ['report'],
      transform: { template: { id: { $path: 'body.id' } } },
    }),
  )
  await produce(large, '--type', 'report')
  await until(
    'both have come',
    () => world.endpoint.delivered('/whole').length + world.endpoint.delivered('/part').length === 2,
  )
  expect(world.endpoint.of('/whole')[0]?.body.toString() === large).toBe(true)
  expect(world.endpoint.of('/part').map(({ body }) => body.toString())).toEqual(['{"id":"r1"}'])
  const [record] = await world.read(world.topics.deliveries)
  expect([record?.value?.length, String(record?.headers['ht-claim'])]).toEqual([
    0,
    expect.stringMatching(/^\{"key":"20/),
  ])
})

test("a producer's own object, pointed to by a CloudEvent's dataref in binary and in structured mode, is what is delivered", async () => {
  await world.subscribe(world.subscription('refs', world.endpoint.at('/refs'), { types: ['ref.*'] }))
  const text = 'a;b\n1;2\n'
  const claim = { ...claimFor(Buffer.from(text), 0), key: 'exports/report.csv' }
  await mkdir(join(store, 'exports'))
  await writeFile(join(store, claim.key), text)
  const pointer = { dataref: claim.key, datarefsize: claim.bytes, datarefsha256: claim.sha256 }
  const attributes = (type: string) => ({ specversion: '1.0', id: type, source: '/exports', type, ...pointer })
  const record = { ...world.eventRecord({ id: 'x', type: 'x', body: '' }), key: null }
  const header = (name: string, value: unknown): [string, Buffer] => [name, Buffer.from(String(value))]
  const inHeaders = Object.entries(attributes('ref.binary')).map(([name, value]) => header(`ce_${name}`, value))
  await world.append(
    { ...record, headers: Object.fromEntries([...inHeaders, header('content-type', 'text/csv')]) },
    {
      ...record,
      headers: Object.fromEntries([header('content-type', 'application/cloudevents+json')]),
      value: Buffer.from(JSON.stringify({ ...attributes('ref.structured'), datacontenttype: 'text/csv' })),
    },
  )
  await until('both have come', () => world.endpoint.delivered('/refs').length === 2)
  for (const { body, headers } of world.endpoint.of('/refs'))
    expect([body.toString(), headers['content-type']]).toEqual([text, 'text/csv'])
})

test('an object that is not there is a dead letter with the reason; the others go on', async () => {
  await world.append(pointing('lost', 'nowhere/at-all'))
  const dead = await until('it is dead', async () =>
    (await world.attempts('whole')).find(({ eventId }) => eventId === 'lost'),
  )
  expect(dead).toMatchObject({
    settlement: 'dead',
    errorClass: 'body',
    error: 'claim: there is no object nowhere/at-all',
  })
})

test("erased are the bodies of an event or a tenant that no one else's record points to; what stays is said, with its time", async () => {
  const put = async (key: string) => {
    await mkdir(dirname(join(store, key)), { recursive: true })
    await writeFile(join(store, key), large)
  }
  const there = (key: string) =>
    readFile(join(store, key)).then(
      () => true,
      () => false,
    )
  for (const key of ['own/one', 'own/both', 'own/other', 'own/shared']) await put(key)
  const of = (tenant: string, id: string, key: string) => {
    const record = pointing(id, key)
    return { ...record, headers: { ...record.headers, 'event-tenant': Buffer.from(tenant) } }
  }
  await world.append(
    of('gone', 'g1', 'own/one'),
    of('gone', 'g2', 'own/both'),
    of('gone', 'g3', 'own/both'),
    of('gone', 'g4', 'own/shared'),
    of('stays', 's1', 'own/shared'),
    of('stays', 's2', 'own/other'),
  )
  const erase = async (...args: string[]) => {
    const { code, out, err } = await hooktide(['erase', ...args, '--json'], { env: world.env })
    expect([code, err]).toEqual([0, ''])
    return JSON.parse(out)
  }
  // g3 points there as well.
  expect(await erase('--event', 'g2')).toMatchObject({ objects: { remove: [], shared: 1 }, done: { objects: 0 } })
  expect(await erase('--event', 'g1', '--dry-run')).toMatchObject({ objects: { remove: ['own/one'] }, done: null })
  expect(await there('own/one')).toBe(true)
  expect(await erase('--event', 'g1')).toMatchObject({ done: { objects: 1 } })
  expect(await there('own/one')).toBe(false)
  const tenant = await erase('--tenant', 'gone')
  expect(tenant).toMatchObject({ objects: { remove: ['own/both', 'own/one'], shared: 1 }, done: { objects: 1 } })
  const kept = tenant.remains.find(({ topic }: { topic: string }) => topic === 'objects')
  expect([kept.how, kept.goneByMs > Date.now() + 86_400_000]).toEqual(['objects clean', true])
  expect(await Promise.all(['own/both', 'own/shared', 'own/other'].map(there))).toEqual([false, true, true])
  const text = await hooktide(['erase', '--tenant', 'gone', '--dry-run'], { env: world.env })
  expect(text.out).toContain('objects 2 stored bodies; 1 stays, others point there too')
})

test('a store that is away holds the delivery back without an attempt; back again, it is sent', async () => {
  await rename(store, `${store}-away`)
  const before = world.endpoint.of('/whole').length
  const key = claimFor(Buffer.from(large), Date.now()).key
  await world.append(pointing('late', key))
  await until('it is told', () => service.log.of('objects.unavailable').length > 0)
  expect((await world.attempts('whole')).filter(({ eventId }) => eventId === 'late')).toEqual([])
  await rename(`${store}-away`, store)
  await until('it comes', () => world.endpoint.of('/whole').length === before + 1)
  expect(world.endpoint.of('/whole').at(-1)?.headers['x-delivery-attempt']).toBe('1')
})
