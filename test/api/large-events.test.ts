import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { claimFor, claimHeader } from '../../src/core/claim.ts'
import { readTopic } from '../../src/operations/read-topic.ts'
import { clusterOf, hooktide } from '../cli/support.ts'
import { type ApiWorld, apiWorld, tokens } from './world.ts'

let world: ApiWorld
let store: string
beforeAll(async () => {
  store = await mkdtemp(join(tmpdir(), 'hooktide-api-claims-'))
  world = await apiWorld({ HOOKTIDE_OBJECTS_DIRECTORY: store, HOOKTIDE_OBJECTS_MAX_BYTES: '1MiB' })
})
afterAll(async () => {
  await world?.close()
  await rm(store, { recursive: true, force: true })
})

const large = JSON.stringify({ pad: 'x'.repeat(700_000) })

async function stored(): Promise<string[]> {
  const files = await readdir(store, { recursive: true, withFileTypes: true })
  return Promise.all(files.filter((f) => f.isFile()).map((f) => readFile(join(f.parentPath, f.name), 'utf8')))
}

test('a body above the inline bound is stored before its record, which points to it; above objects.maxBytes it is refused', async () => {
  const { status, body } = await world.ask('POST', '/v1/events', { body: { type: 'report', data: JSON.parse(large) } })
  expect(status).toBe(202)
  expect(await stored()).toEqual([large])
  const cluster = clusterOf(world.env)
  const reader = cluster.kafka.reader()
  const found: unknown[] = []
  for await (const { record } of readTopic(reader, body.topic))
    found.push([record.value?.length, JSON.parse(String(record.headers[claimHeader])).sha256])
  await reader.close()
  await cluster.close()
  expect(found).toEqual([[0, claimFor(Buffer.from(large), 0).sha256]])

  const over = await world.ask('POST', '/v1/events', { body: { type: 'report', data: 'x'.repeat(1_100_000) } })
  expect([over.status, over.body.code]).toEqual([413, 'record.too-large'])
  const bare = await world.ask('POST', '/v1/events', { body: { data: { type: 'report', ...JSON.parse(large) } } })
  expect([bare.status, bare.text]).toEqual([422, expect.stringContaining('needs its type')])
  expect(await stored()).toEqual([large])
})

test('produce hands a large file to the API as it is', async () => {
  const file = join(store, 'input.json')
  const other = large.replaceAll('x', 'y')
  await writeFile(file, other)
  const args = ['produce', '--type', 'report', file, '--api-url', world.base, '--token-ref', 'env:TOKEN']
  const { code, err } = await hooktide(args, { env: { TOKEN: tokens.operator } })
  expect([code, err]).toEqual([0, ''])
  expect((await stored()).sort()).toEqual([large, other, other].sort())
})
