import { describe, expect, it } from 'vitest'
import type { Reply } from '../../src/core/outcome.ts'
import type { Post } from '../../src/ports.ts'
import {
  breaks,
  changes,
  delivers,
  type Endpoint,
  fails,
  failsFirst,
  flaky,
  gone,
  hangs,
  rateLimits,
  slow,
} from './endpoints.ts'
import { FakeClock } from './fake-clock.ts'
import { Receiver } from './receiver.ts'
import { SimProcess } from './sim-process.ts'

const url = 'http://a.test/'

function post(sequence: number, more: Partial<Post> = {}): Post {
  return {
    url,
    deliveryId: `d${sequence}`,
    attempt: 1,
    eventType: 't',
    contentType: 'application/json',
    traceparent: null,
    body: Buffer.from(JSON.stringify({ key: 'k', sequence })),
    headers: undefined,
    keys: [],
    timeoutMs: undefined,
    ...more,
  }
}

function world(endpoint: Endpoint, seed = 1) {
  const clock = new FakeClock({ seed })
  const receiver = new Receiver(clock, { seed })
  receiver.serve(url, 'sub', endpoint)
  const process = new SimProcess('w', 1, clock, seed)
  return { clock, receiver, process, sender: receiver.sender(process) }
}

async function replies(endpoint: Endpoint, count: number, gapMs = 10): Promise<string[]> {
  const { clock, sender } = world(endpoint)
  const seen: string[] = []
  for (let i = 0; i < count; i++) {
    seen.push(text(await clock.drive(sender.post(post(i, { attempt: i + 1 })))))
    await clock.advance(gapMs)
  }
  return seen
}

function text(reply: Reply): string {
  if (reply.t === 'response') return `${reply.status}${reply.retryAfter === null ? '' : ` after ${reply.retryAfter}`}`
  return reply.t === 'failure' ? reply.class : reply.t
}

describe('fake receiver', () => {
  it('writes down who sent what, when, and what came of it', async () => {
    const { clock, receiver, sender } = world(slow(100, 100))
    const startMs = clock.mono()
    const sending = sender.post(post(7))
    expect(receiver.posts).toHaveLength(1)
    expect(receiver.posts[0]).toMatchObject({ startMs, endMs: null, outcome: 'open', acceptedMs: null })
    const reply = await clock.drive(sending)
    expect(reply.durationMs).toBeGreaterThan(100)
    const [entry] = receiver.posts
    expect(entry).toMatchObject({
      deliveryId: 'd7',
      subscription: 'sub',
      key: 'k',
      sequence: 7,
      attempt: 1,
      process: 'w',
      outcome: 'status 200',
    })
    expect(entry?.acceptedMs).toBeLessThan(entry?.endMs ?? 0)
  })

  it.each([
    ['delivers', delivers(), ['200', '200']],
    ['fails', fails(503), ['503', '503']],
    ['gone', gone(), ['410', '410']],
    ['breaks', breaks('reset'), ['reset', 'reset']],
    ['failsFirst', failsFirst(2), ['503', '503', '200']],
    ['rateLimits', rateLimits(1, 30_000), ['200', '429 after 30', '429 after 30']],
  ] as const)('%s', async (_, endpoint, expected) => {
    expect(await replies(endpoint, expected.length)).toEqual(expected)
  })

  it('flaky fails about as often as it is told to, equally for equal seeds', async () => {
    const seen = await replies(flaky(0.3), 200)
    expect(seen.filter((s) => s !== '200').length).toBeGreaterThan(35)
    expect(seen.filter((s) => s !== '200').length).toBeLessThan(85)
    expect(new Set(seen).size).toBeGreaterThan(3)
    expect(await replies(flaky(0.3), 200)).toEqual(seen)
  })

  it('an outage can end', async () => {
    const { clock } = world(delivers())
    const endpoint = changes(fails(500), clock.now() + 50, delivers())
    expect(await replies(endpoint, 6, 10)).toEqual(['500', '500', '500', '200', '200', '200'])
  })

  it('hangs until the deadline of the attempt', async () => {
    const { clock, sender } = world(hangs())
    const reply = await clock.drive(sender.post(post(1, { timeoutMs: 700 })))
    expect(reply).toEqual({ t: 'failure', class: 'timeout', detail: 'deadline', durationMs: 700 })
  })

  it('an aborted POST is interrupted, though the endpoint may take it all the same', async () => {
    const { clock, receiver, sender } = world(delivers(50))
    const sending = sender.post(post(1))
    await clock.advance(10)
    sender.abortAll('stop')
    expect((await clock.drive(sending)).t).toBe('interrupted')
    await clock.advance(100)
    expect(receiver.posts[0]?.outcome).toBe('interrupted')
    expect(receiver.posts[0]?.acceptedMs).not.toBe(null)
  })

  it('a dead process learns nothing, its POST arrives all the same', async () => {
    const { clock, receiver, process, sender } = world(delivers(50))
    void sender.post(post(1))
    await clock.advance(10)
    process.kill()
    await clock.advance(1_000)
    expect(receiver.posts[0]).toMatchObject({ endMs: null, outcome: 'open' })
    expect(receiver.posts[0]?.acceptedMs).not.toBe(null)
    expect(receiver.openPosts(process)).toHaveLength(1)
  })

  it('nobody answers at an unknown address', async () => {
    const { clock, sender } = world(delivers())
    expect(text(await clock.drive(sender.post(post(1, { url: 'http://nowhere.test/' }))))).toBe('dns')
  })
})
