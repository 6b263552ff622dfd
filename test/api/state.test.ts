import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createStateTools } from '../../src/app/state-tools.ts'
import { loadConfig } from '../../src/config.ts'
import { clusterOf } from '../cli/support.ts'
import { realClock } from '../support/clock.ts'
import { notingObserver } from '../support/kafka.ts'
import { type ApiWorld, apiWorld, tokens } from './world.ts'

let world: ApiWorld
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hooktide-api-'))
  world = await apiWorld({ HOOKTIDE_STATE_ENABLED: 'true', HOOKTIDE_STATE_PATH: folder })
})
afterAll(async () => {
  await world.close()
  await rm(folder, { recursive: true, force: true })
})

/** Folds the log as it is now. */
async function fold(): Promise<void> {
  const { config } = loadConfig({ env: world.env })
  const cluster = clusterOf(world.env)
  const state = createStateTools(config, world.env, { clock: realClock, observer: notingObserver() })
  await state.rebuild(cluster, { signal: new AbortController().signal, progress: () => undefined })
  await state.close()
  await cluster.close()
}

test('deliveries are searched page by page and shown, each tenant its own; what waits is not sent again', async () => {
  const secrets = [{ ref: 'env:SIGNING' }]
  const sent: string[] = []
  for (const tenant of ['acme', 'globex']) {
    const body = { id: `${tenant}-one`, tenant, url: 'http://127.0.0.1:18080/', secrets }
    await world.ask('POST', '/v1/subscriptions', { body })
    for (let i = 0; i < 3; i++) {
      const { body } = await world.ask('POST', `/v1/subscriptions/${tenant}-one/test`)
      sent.push(body.deliveryId)
    }
  }
  await fold()
  const whole = await world.ask('GET', '/v1/state')
  expect([whole.status, whole.body]).toEqual([
    200,
    expect.objectContaining({ behind: 0, partitions: 0, counts: expect.objectContaining({ queued: 6, delivered: 0 }) }),
  ])
  const half = await world.ask('GET', '/v1/state', { token: tokens.acme })
  expect(half.body.counts.queued).toBe(3)
  const first = await world.ask('GET', '/v1/deliveries?limit=4')
  expect([first.status, first.body.items.length]).toEqual([200, 4])
  const second = await world.ask('GET', `/v1/deliveries?limit=4&cursor=${encodeURIComponent(first.body.nextCursor)}`)
  expect([second.body.items.length, second.body.nextCursor]).toEqual([2, null])
  const ids = [...first.body.items, ...second.body.items].map(({ id }: { id: string }) => id)
  expect(ids.sort()).toEqual([...sent].sort())

  const mine = await world.ask('GET', '/v1/deliveries?subscription=globex-one', { token: tokens.acme })
  expect(mine.body.items).toEqual([])
  const acme = await world.ask('GET', '/v1/deliveries?status=queued&type=hooktide.test', { token: tokens.acme })
  expect(acme.body.items.map(({ tenant }: { tenant: string }) => tenant)).toEqual(['acme', 'acme', 'acme'])

  const [id, foreign] = [acme.body.items[0].id, sent[5]]
  for (const path of [
    `/v1/deliveries/${foreign}`,
    `/v1/deliveries/${foreign}/attempts`,
    `/v1/deliveries/${foreign}/story`,
  ])
    expect((await world.ask('GET', path, { token: tokens.acme })).status).toBe(404)
  for (const action of ['retry', 'cancel'])
    expect((await world.ask('POST', `/v1/deliveries/${foreign}/${action}`, { token: tokens.acme })).status).toBe(404)
  expect((await world.ask('GET', `/v1/deliveries/${id}`, { token: tokens.acme })).body).toMatchObject({ id, log: [] })
  const retried = await world.ask('POST', `/v1/deliveries/${id}/retry`, { token: tokens.acme })
  expect([retried.status, retried.body.code]).toEqual([409, 'conflict'])
  const cancelled = await world.ask('POST', `/v1/deliveries/${id}/cancel`, { token: tokens.acme })
  expect(cancelled.body.order).toMatchObject({ target: id, order: 'cancel', by: 'token acme' })
  const health = await world.ask('GET', '/v1/subscriptions/acme-one/health')
  expect(health.body.health.deliveries).toMatchObject({ queued: 3 })
  expect((await world.ask('GET', '/v1/deliveries?cursor=x')).status).toBe(400)
})
