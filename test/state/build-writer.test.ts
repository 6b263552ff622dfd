import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { DeliveryRow } from '../../src/core/state-row.ts'
import { BuildWriter } from '../../src/state/build-writer.ts'
import { openSqlite } from '../../src/state/sqlite-database.ts'
import type { StateChange } from '../../src/state/writer.ts'

async function opened(): Promise<BuildWriter> {
  const folder = mkdtempSync(join(tmpdir(), 'hooktide-build-'))
  const path = join(folder, 'state.sqlite')
  const { raw } = await openSqlite(path, 'build')
  raw.close()
  const writer = new BuildWriter(path)
  onTestFinished(async () => {
    await writer.abandon()
    rmSync(folder, { recursive: true, force: true })
  })
  return writer
}

function row(id: string): DeliveryRow {
  const place = { topic: 'deliveries', partition: 0, offset: 1 }
  const sending = {
    ...place,
    origin: 'events/0:1:1',
    n: 0,
    rank: 0,
    timeMs: 5,
    status: 'queued' as const,
    dueMs: null,
    error: null,
    deadReason: null,
    posts: 0,
    postN: 0,
    postStatus: null,
  }
  const names = { tenant: 't', subscriptionId: 's', eventId: 'e', eventType: 'order.paid' }
  return { id, ...names, created: { ms: 5, from: 0 }, event: null, sendings: [sending] }
}

function added(no: number, id: string): StateChange {
  const change = { attempts: [], health: [], counts: [], orders: [], positions: [] }
  return { ...change, rows: [{ no, row: row(id), before: null }] }
}

test('what was handed over is read back, though it is still on its way', async () => {
  const writer = await opened()
  for (let no = 1; no <= 5; no++) await writer.commit(added(no, `msg_${no}`))
  const found = await writer.rows(['msg_5', 'msg_1', 'msg_6'])
  expect([...found].sort()).toEqual([
    ['msg_1', { no: 1, row: row('msg_1') }],
    ['msg_5', { no: 5, row: row('msg_5') }],
  ])
})

test('a batch that can not be written fails what is asked next, and the end', async () => {
  const writer = await opened()
  await writer.commit(added(1, 'msg_1'))
  // The same number once more.
  await writer.commit(added(1, 'msg_2'))
  await expect(writer.rows(['msg_1'])).rejects.toMatchObject({ code: 'state.unavailable' })
  await expect(writer.finish()).rejects.toMatchObject({ code: 'state.unavailable' })
})

test('a build that is given up while batches are on their way keeps nobody waiting', async () => {
  const writer = await opened()
  const asked = writer.commit(added(1, 'msg_1')).then(() => writer.rows(['msg_1']))
  await Promise.all([expect(asked).rejects.toMatchObject({ code: 'state.unavailable' }), writer.abandon()])
})
