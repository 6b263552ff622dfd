import { request } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Health, type ObserveServerOptions, startObserveServer } from '../../src/observe/server.ts'
import type { Observer } from '../../src/ports.ts'
import { FakeClock } from '../sim/fake-clock.ts'
import { realClock } from '../support/clock.ts'

const well: Health = { ok: true, reasons: [] }

async function serve(options: Partial<ObserveServerOptions> = {}) {
  const logged: string[] = []
  const observer: Observer = { log: (_, name) => void logged.push(name), count: () => {}, time: () => {} }
  const server = await startObserveServer({
    port: 0,
    metrics: async () => ({ contentType: 'text/plain; version=0.0.4', body: 'hooktide_ready_depth 1\n' }),
    health: () => well,
    ready: () => well,
    clock: realClock,
    observer,
    ...options,
  })
  onTestFinished(() => server.close())
  const get = (path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${server.port}${path}`, { signal: AbortSignal.timeout(10_000), ...init })
  return { server, get, logged }
}

describe('observe server', () => {
  it('serves metrics as they are', async () => {
    const { get } = await serve()
    const response = await get('/metrics?x=1')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4')
    expect(await response.text()).toBe('hooktide_ready_depth 1\n')
  })

  it('healthz fails with the reasons when consumption has stopped, and comes back when it goes on', async () => {
    let health: Health = { ok: false, reasons: ['lane 3: no fetch for 60 s, 120 records wait'] }
    const { get } = await serve({ health: () => health })
    const bad = await get('/healthz')
    expect(bad.status).toBe(503)
    expect(await bad.json()).toEqual(health)
    health = well
    const good = await get('/healthz')
    expect([good.status, await good.json()]).toEqual([200, well])
  })

  it('readyz is a question of its own', async () => {
    const { get } = await serve({ ready: async () => ({ ok: false, reasons: ['subscriptions are being read'] }) })
    expect((await get('/readyz')).status).toBe(503)
    expect((await get('/healthz')).status).toBe(200)
  })

  it('a check that throws is a failed check, without its secrets', async () => {
    const { get } = await serve({
      health: () => {
        throw new Error('no answer from https://u:hunter2@h/')
      },
    })
    const response = await get('/healthz')
    expect(response.status).toBe(503)
    expect(await response.json()).toEqual({ ok: false, reasons: ['no answer from https://h/'] })
  })

  it('a check that hangs is a failed check', async () => {
    const clock = new FakeClock()
    let asked = () => {}
    const asking = new Promise<void>((resolve) => {
      asked = resolve
    })
    const { get } = await serve({
      clock,
      health: () => {
        asked()
        return new Promise(() => {})
      },
    })
    const response = get('/healthz')
    await asking
    await clock.advance(3_000)
    expect((await response).status).toBe(503)
    expect(await (await response).json()).toEqual({ ok: false, reasons: ['no answer within 3000 ms'] })
  })

  it('answers HEAD without a body, other methods and paths with what is allowed', async () => {
    const { get } = await serve()
    const head = await get('/metrics', { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
    const post = await get('/healthz', { method: 'POST', body: 'x' })
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    for (const path of ['/', '/other', '/constructor', '/metrics/']) expect((await get(path)).status).toBe(404)
  })

  it('metrics that fail are a 500 and a log line, and the server goes on', async () => {
    const { get, logged } = await serve({
      metrics: async () => {
        throw new Error('registry closed')
      },
    })
    expect((await get('/metrics')).status).toBe(500)
    expect(logged).toEqual(['observe.failed'])
    expect((await get('/healthz')).status).toBe(200)
  })

  it('a taken port is an error that says what to do', async () => {
    const { server } = await serve()
    await expect(serve({ port: server.port })).rejects.toMatchObject({
      code: 'config.invalid',
      remedy: expect.stringContaining('port'),
    })
  })

  it('close finishes the answer under way, cuts idle connections, and is idempotent', async () => {
    let finish = (_: Health) => {}
    let asked = () => {}
    const asking = new Promise<void>((resolve) => {
      asked = resolve
    })
    const { server, get } = await serve({
      health: () => {
        asked()
        return new Promise((resolve) => {
          finish = resolve
        })
      },
    })
    await (await get('/metrics')).text()
    const slow = get('/healthz')
    await asking
    const closed = Promise.all([server.close(), server.close()])
    finish(well)
    expect((await slow).status).toBe(200)
    await closed
    const refused = await new Promise<string>((resolve) => {
      request({ port: server.port, host: '127.0.0.1', path: '/healthz' })
        .on('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? ''))
        .on('response', () => resolve('answered'))
        .end()
    })
    expect(refused).toBe('ECONNREFUSED')
  })
})
