import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { type Behaviour, type ReceivedRequest, Receiver } from '../../src/cli/receiver.ts'
import { type Key, parseSecret, signatureHeader } from '../../src/core/signature.ts'
import { realClock } from '../support/clock.ts'
import { atEnd, hooktide, sink } from './support.ts'

const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
const other = `whsec_${Buffer.alloc(32, 2).toString('base64')}`

interface Answer {
  /** Null: the connection was closed without one. */
  readonly status: number | null
  readonly retryAfter: string | undefined
}

function post(port: number, path: string, headers: Record<string, string>, body: string): Promise<Answer> {
  return new Promise((resolve) => {
    const sent = request({ port, path, method: 'POST', host: '127.0.0.1', headers, agent: false }, (response) => {
      response
        .resume()
        .on('end', () => resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'] }))
    })
    sent.on('error', () => resolve({ status: null, retryAfter: undefined }))
    sent.end(body)
  })
}

function signed(id: string, body: string, with_ = secret, atMs = Date.now()): Record<string, string> {
  const key = parseSecret(with_)
  if (!key.ok) throw new Error(key.reason)
  const timestampS = Math.floor(atMs / 1000)
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': signatureHeader([key.value as Key], id, timestampS, Buffer.from(body)),
    'x-delivery-attempt': '2',
    'x-event-type': 'order.paid',
  }
}

async function receiver(behaviours: Record<string, Behaviour> = {}, secrets: readonly string[] = [secret]) {
  const seen: ReceivedRequest[] = []
  const it = new Receiver({
    clock: realClock,
    port: 0,
    secretsOf: () => secrets,
    behaviours: new Map(Object.entries(behaviours)),
    onRequest: (entry) => seen.push(entry),
  })
  const port = await it.start()
  atEnd(() => it.stop())
  return { port, seen, it }
}

describe('signatures', () => {
  test.each<[string, Record<string, string>, number, string]>([
    ['a good one is a delivery', signed('m1', 'x'), 200, 'verified'],
    ['none', {}, 401, 'unsigned'],
    ['of another secret', signed('m1', 'x', other), 401, 'bad-signature'],
    ['of another body', signed('m1', 'y'), 401, 'bad-signature'],
    ['older than five minutes', signed('m1', 'x', secret, Date.now() - 302_000), 401, 'too-old'],
    ['more than five minutes ahead', signed('m1', 'x', secret, Date.now() + 302_000), 401, 'too-old'],
  ])('%s', async (_name, headers, status, verdict) => {
    const { port, seen } = await receiver()
    expect((await post(port, '/', headers, 'x')).status).toBe(status)
    expect(seen.map((entry) => entry.verdict)).toEqual([verdict])
  })

  test('any one of several secrets is enough; without a secret nothing is checked', async () => {
    const both = await receiver({}, [other, secret])
    expect((await post(both.port, '/', signed('m1', 'x'), 'x')).status).toBe(200)
    const none = await receiver({}, [])
    expect((await post(none.port, '/', {}, 'x')).status).toBe(200)
    expect(none.seen[0]?.verdict).toBe('none')
  })
})

describe('behaviours', () => {
  test('every third request fails, counted per path; others are good', async () => {
    const { port } = await receiver({ '/flaky': { every: 3, status: 503 } })
    const flaky: (number | null)[] = []
    for (let i = 1; i <= 6; i++) {
      flaky.push((await post(port, '/flaky', signed(`m${i}`, 'x'), 'x')).status)
      expect((await post(port, '/good', signed(`m${i}`, 'x'), 'x')).status).toBe(200)
    }
    expect(flaky).toEqual([200, 200, 503, 200, 200, 503])
  })

  test('a status with Retry-After; a good answer never carries it', async () => {
    const { port } = await receiver({ '*': { every: 2, status: 429, retryAfterS: 5 } })
    expect(await post(port, '/', signed('m1', 'x'), 'x')).toEqual({ status: 200, retryAfter: undefined })
    expect(await post(port, '/', signed('m1', 'x'), 'x')).toEqual({ status: 429, retryAfter: '5' })
  })

  test('hanging up gives no answer, and is in the journal', async () => {
    const { port, seen } = await receiver({ '*': { hangUp: true } })
    expect((await post(port, '/', signed('m1', 'x'), 'x')).status).toBeNull()
    expect(seen.map(({ status }) => status)).toEqual([null])
  })

  test('a delay delays; stopping does not wait for it', async () => {
    const { port, it, seen } = await receiver({ '/slow': { delayMs: 80 }, '/stuck': { delayMs: 60_000 } })
    await post(port, '/slow', signed('m1', 'x'), 'x')
    expect(seen[0]?.durationMs).toBeGreaterThanOrEqual(79)
    const stuck = post(port, '/stuck', signed('m2', 'x'), 'x')
    await expect.poll(() => it.open).toBe(1)
    await it.stop()
    expect((await stuck).status).toBeNull()
  })

  test('a behaviour can be changed while it runs', async () => {
    const { port, it } = await receiver()
    expect((await post(port, '/', signed('m1', 'x'), 'x')).status).toBe(200)
    it.behave('*', { status: 410 })
    expect((await post(port, '/', signed('m1', 'x'), 'x')).status).toBe(410)
  })
})

test('the journal tells what came: id, attempt, type, body, and whether it had been delivered before', async () => {
  const { port, seen } = await receiver({ '*': { every: 2, status: 503 } })
  for (const id of ['m1', 'm2', 'm1']) await post(port, '/a?b=c', signed(id, 'x'), 'x')
  expect(seen.map(({ number, deliveryId, status, repeated }) => [number, deliveryId, status, repeated])).toEqual([
    [1, 'm1', 200, false],
    [2, 'm2', 503, false],
    [3, 'm1', 200, true],
  ])
  expect(seen[0]).toMatchObject({
    method: 'POST',
    path: '/a',
    attempt: 2,
    eventType: 'order.paid',
    verdict: 'verified',
  })
  expect(String(seen[0]?.body)).toBe('x')
})

describe('hooktide listen', () => {
  async function listen(args: readonly string[], send: (port: number) => Promise<unknown>) {
    const err = sink()
    const running = hooktide(['listen', '--port', '0', ...args], { stderr: err.output, env: { SECRET: secret } })
    await expect.poll(() => err.text()).toContain('listening on')
    await send(Number(/:(\d+)/.exec(err.text())?.[1]))
    return { ...(await running), err: err.text() }
  }

  test('one line per request; ends after as many as asked for; exit 0 when all were signed', async () => {
    const { code, out } = await listen(['--secret', 'env:SECRET', '--requests', '2'], async (port) => {
      for (const id of ['m1', 'm1']) await post(port, '/hook', signed(id, '{}'), '{}')
    })
    expect(code).toBe(0)
    expect(out.replaceAll(/^[\d:.]{12}/gm, 'T').replaceAll(/\d+ms/g, 'Nms')).toBe(
      [
        'T 200 POST /hook Nms m1 attempt 2 order.paid 2 B verified',
        'T 200 POST /hook Nms m1 attempt 2 order.paid 2 B verified again',
        '2 requests, 0 not verified',
        '',
      ].join('\n'),
    )
  })

  test('JSON lines; exit 1 when a signature was wrong', async () => {
    const { code, out } = await listen(['--secret', secret, '--requests', '1', '--json', '--body'], (port) =>
      post(port, '/', signed('m1', 'x', other), 'x'),
    )
    expect(code).toBe(1)
    expect(JSON.parse(out)).toMatchObject({
      deliveryId: 'm1',
      status: 401,
      verdict: 'bad-signature',
      bytes: 1,
      body: 'x',
    })
  })

  test('says that signatures are not checked without a secret; a signal ends it', async () => {
    const end = new AbortController()
    const err = sink()
    const running = hooktide(['listen', '--port', '0'], { stderr: err.output, signal: end.signal })
    await expect.poll(() => err.text()).toContain('(signatures are not checked: no --secret)')
    end.abort()
    expect(await running).toMatchObject({ code: 0, out: '0 requests, 0 not verified\n' })
  })

  test('a port in use is named with the remedy', async () => {
    const { port } = await receiver()
    const { code, err } = await hooktide(['listen', '--port', String(port)])
    expect(code).toBe(1)
    expect(err).toContain(`error: can not listen on 127.0.0.1:${port}`)
    expect(err).toContain('Give another --port')
  })
})
