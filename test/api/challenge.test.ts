import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { challengeAnswer } from '../../src/core/endpoint-challenge.ts'
import { type ApiWorld, apiWorld } from './world.ts'

let world: ApiWorld
let server: Server
let base = ''
const asked: string[] = []
beforeAll(async () => {
  server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    asked.push(request.url ?? '')
    const answer = challengeAnswer(Buffer.concat(parts))
    response.end(request.url === '/silent' ? 'ok' : answer)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  world = await apiWorld({ HOOKTIDE_ENDPOINTS_CHALLENGE: 'on' })
})
afterAll(async () => {
  server?.closeAllConnections()
  server?.close()
  await world?.close()
})

const secrets = [{ ref: 'env:SIGNING' }]
const stateOf = async (id: string) => (await world.ask('GET', `/v1/subscriptions/${id}`)).body.status
const patch = (id: string, body: object) =>
  world.ask('PATCH', `/v1/subscriptions/${id}`, { body, headers: { 'if-match': '*' } })

test('with endpoints.challenge: on, whoever adds an endpoint or moves to another one through the API has it challenged', async () => {
  await world.ask('POST', '/v1/subscriptions', { body: { id: 'good', url: `${base}/good`, secrets } })
  expect([asked.splice(0), await stateOf('good')]).toEqual([['/good'], 'active'])
  await world.ask('POST', '/v1/subscriptions', { body: { id: 'silent', url: `${base}/silent`, secrets } })
  expect([asked.splice(0), await stateOf('silent')]).toEqual([['/silent'], 'paused'])

  expect((await patch('good', { types: ['a.*'] })).status).toBe(200)
  expect([asked.splice(0), await stateOf('good')]).toEqual([[], 'active'])
  expect((await patch('good', { url: `${base}/silent` })).status).toBe(200)
  expect([asked.splice(0), await stateOf('good')]).toEqual([['/silent'], 'paused'])
})

test('resuming is no way around it', async () => {
  await world.ask('POST', '/v1/subscriptions', { body: { id: 'around', url: `${base}/silent`, secrets } })
  expect(await stateOf('around')).toBe('paused')
  const subscription = { id: 'list', url: `${base}/silent`, secrets }
  await world.ask('POST', '/v1/subscriptions/apply', { body: { subscriptions: [subscription] } })
  expect(await stateOf('list')).toBe('paused')
})
