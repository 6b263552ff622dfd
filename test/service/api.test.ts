import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createWorld, until, type World } from './world.ts'

let world: World
const folder = mkdtempSync(join(tmpdir(), 'hooktide-api-service-'))
beforeAll(async () => {
  world = await createWorld({
    env: {
      HOOKTIDE_STATE_ENABLED: 'true',
      HOOKTIDE_STATE_PATH: folder,
      HOOKTIDE_API_LISTEN: '127.0.0.1:0',
      HOOKTIDE_API_AUTH: 'off',
    },
  })
})
afterAll(async () => {
  await world?.close()
  rmSync(folder, { recursive: true, force: true })
})

test('from the subscription to the second sending: everything of an event by HTTP alone', async () => {
  const { endpoint } = world
  let healed = false
  const running = await world.up({ roles: ['router', 'deliverer', 'projector', 'api'] })
  const ask = async (method: string, path: string, body?: object) => {
    const response = await fetch(`http://127.0.0.1:${running.service.apiPort}${path}`, {
      method,
      signal: AbortSignal.timeout(20_000),
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? null : JSON.parse(text) }
  }
  const secrets = [{ ref: 'env:HOOKTIDE_SECRET_TEST' }]
  const url = endpoint.at('/hook', () => ({ status: healed ? 200 : 400 }))
  expect((await ask('POST', '/v1/subscriptions', { id: 'hooked', url, secrets, types: ['order.*'] })).status).toBe(201)
  // Acknowledged is known: the event right behind it is matched.
  const { body: event } = await ask('POST', '/v1/events', { type: 'order.paid', id: 'e-1', data: { n: 1 } })
  expect(event.eventId).toBe('e-1')

  const found = async () => (await ask('GET', '/v1/deliveries?eventId=e-1')).body?.items?.[0]
  const reaches = async (status: string) => {
    let seen: { status?: string } | undefined
    const reached = async () => {
      seen = await found()
      return seen?.status === status
    }
    await until(status, reached, { withinMs: 20_000, seen: () => seen })
  }
  await reaches('dead')
  const { id } = await found()
  const dead = await ask('GET', '/v1/dead?subscription=hooked')
  expect(dead.body.dead).toMatchObject([{ deliveryId: id, reason: 'rejected' }])
  expect(Buffer.from((await ask('GET', `/v1/dead/${id}`)).body.body, 'base64').toString()).toBe('{"n":1}')

  healed = true
  expect((await ask('POST', `/v1/deliveries/${id}/retry`)).body).toMatchObject({ redriven: 1 })
  await reaches('delivered')
  // What was delivered is sent again by its body in the log, under the same id.
  expect((await ask('POST', `/v1/deliveries/${id}/retry`)).body).toMatchObject({ redriven: 1 })
  await until('the third POST', () => endpoint.of('/hook').length === 3, { withinMs: 20_000 })
  expect(endpoint.of('/hook').map((post) => [post.id, post.body.toString()])).toEqual(
    [1, 2, 3].map(() => [id, '{"n":1}']),
  )
  await until(
    'three attempts',
    async () => (await ask('GET', `/v1/deliveries/${id}/attempts`)).body.attempts.length === 3,
    {
      withinMs: 20_000,
    },
  )
  const { body: tested } = await ask('POST', '/v1/subscriptions/hooked/test')
  await until('the test', () => endpoint.of('/hook').some((post) => post.id === tested.deliveryId), {
    withinMs: 20_000,
  })
  const health = await ask('GET', '/v1/subscriptions/hooked/health')
  expect(health.body).toMatchObject({ status: 'active', health: { failed: 1 } })

  expect((await ask('GET', '/v1/nowhere/e-1')).status).toBe(404)
  const { text: metrics } = await running.page('/metrics')
  expect(metrics).toMatch(/^hooktide_api_requests_total\{route="POST \/v1\/events",status="2xx"\} 1$/m)
  expect(metrics).toMatch(/^hooktide_api_requests_total\{route="unknown",status="4xx"\} 1$/m)
  expect(metrics).toMatch(/^hooktide_api_request_seconds_count\{route="POST \/v1\/events"\} 1$/m)
  expect(metrics).toMatch(/^hooktide_projector_lag \d+$/m)
  expect(metrics).toMatch(/^hooktide_job_parts 0$/m)
  // Routes are those of the table: no id, nothing of a path.
  expect(metrics).not.toContain('e-1')
  expect(metrics).not.toContain(id)
  await running.stop()
  await expect(ask('GET', '/v1/subscriptions')).rejects.toThrow()
})
