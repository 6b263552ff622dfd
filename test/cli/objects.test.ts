import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hooktide, ownWorld } from './support.ts'

const day = 86_400_000
const dayAgo = (n: number) => new Date(Date.now() - n * day).toISOString().slice(0, 10)
let env: Record<string, string>
let store: string
beforeAll(async () => {
  store = await mkdtemp(join(tmpdir(), 'hooktide-clean-'))
  env = await ownWorld({ HOOKTIDE_OBJECTS_DIRECTORY: store })
  for (const n of [0, 100, 124, 140, 300]) await mkdir(join(store, dayAgo(n)))
})
afterAll(() => rm(store, { recursive: true, force: true }))

test('clean removes what no record can point to: older than the topics keep one; a dry run only says so', async () => {
  // events and parked 30 days, a dead letter 90 days more, and a segment of each.
  const dry = await hooktide(['objects', 'clean', '--dry-run', '--json'], { env })
  expect(JSON.parse(dry.out)).toMatchObject({ days: [dayAgo(300), dayAgo(140)], warning: null, dryRun: true })
  expect(await readdir(store)).toHaveLength(5)
  const done = await hooktide(['objects', 'clean'], { env })
  expect([done.code, done.out]).toEqual([0, expect.stringMatching(/^removed 2 days before /)])
  expect(await readdir(store)).toEqual([dayAgo(124), dayAgo(100), dayAgo(0)])
})

test('younger ones go when that is asked for, with a warning; without a store there is nothing to clean', async () => {
  const done = await hooktide(['objects', 'clean', '--older-than', '50d'], { env })
  expect(done.out).toMatch(/^removed 2 days/)
  expect(done.err).toMatch(/records may point to younger ones \(.*, then .*dead\)/)
  expect(await readdir(store)).toEqual([dayAgo(0)])
  const none = await hooktide(['objects', 'clean'], { env: { ...env, HOOKTIDE_OBJECTS_DIRECTORY: '' } })
  expect([none.code, none.err]).toEqual([2, expect.stringContaining('no object store is configured')])
})
