import { expect, test } from 'vitest'
import type { Failure } from '../../src/http/failure.ts'
import { type Answer, parseHosts, type Query, Resolver } from '../../src/http/resolver.ts'
import type { Clock } from '../../src/ports.ts'

/** Time moves when the test says so. */
class ManualClock implements Clock {
  #ms = 0
  #timers: { at: number; fn: () => void }[] = []

  now(): number {
    return this.#ms
  }

  mono(): number {
    return this.#ms
  }

  random(): number {
    return 0
  }

  after(ms: number, fn: () => void): () => void {
    const timer = { at: this.#ms + ms, fn }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }

  async pass(ms: number): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    this.#ms += ms
    for (const timer of this.#timers.filter((each) => each.at <= this.#ms)) {
      this.#timers = this.#timers.filter((other) => other !== timer)
      timer.fn()
    }
    await new Promise((resolve) => setImmediate(resolve))
  }

  get waiting(): number {
    return this.#timers.length
  }
}

type Result = { error: Failure | null; addresses: readonly string[] }

function setup(answer: Query, options: { maxTtlMs?: number; maxEntries?: number } = {}) {
  const clock = new ManualClock()
  const asked: string[] = []
  const query: Query = (name, family) => {
    asked.push(`${name}/${family}`)
    return answer(name, family)
  }
  const resolver = new Resolver({
    clock,
    query,
    hosts: parseHosts('10.9.8.7 Db.Corp # comment\nnonsense x\n'),
    ...options,
  })
  const lookup = (name: string) =>
    new Promise<Result>((resolve) => resolver.lookup(name, (error, addresses) => resolve({ error, addresses })))
  return { clock, asked, lookup }
}

const both: Query = async (_, family): Promise<Answer[]> => [
  family === 4 ? { address: '1.1.1.1', ttlS: 10 } : { address: '2606::1', ttlS: 5 },
]
const fails =
  (code: string): Query =>
  async () => {
    throw Object.assign(new Error(code), { code })
  }

test('both families are asked, IPv4 answers come first', async () => {
  const { lookup, asked } = setup(both)
  expect(await lookup('a.example')).toEqual({ error: null, addresses: ['1.1.1.1', '2606::1'] })
  expect(asked).toEqual(['a.example/4', 'a.example/6'])
})

test('equal questions at one time share a lookup', async () => {
  const { lookup, asked } = setup(both)
  await Promise.all([lookup('a.example'), lookup('a.example'), lookup('a.example')])
  expect(asked).toHaveLength(2)
})

test('an answer is kept for the smallest TTL in it, and not longer than the bound', async () => {
  const short = setup(both)
  await short.lookup('a.example')
  await short.clock.pass(4999)
  await short.lookup('a.example')
  expect(short.asked).toHaveLength(2)
  await short.clock.pass(2)
  await short.lookup('a.example')
  expect(short.asked).toHaveLength(4)

  const bounded = setup(async (_, family) => (family === 4 ? [{ address: '1.1.1.1', ttlS: 86_400 }] : []), {
    maxTtlMs: 1000,
  })
  await bounded.lookup('a.example')
  await bounded.clock.pass(1001)
  await bounded.lookup('a.example')
  expect(bounded.asked).toHaveLength(4)
})

test('TTL 0 and failures are not kept', async () => {
  const zero = setup(async () => [{ address: '1.1.1.1', ttlS: 0 }])
  await zero.lookup('a.example')
  await zero.lookup('a.example')
  expect(zero.asked).toHaveLength(4)
  const failing = setup(fails('ENOTFOUND'))
  expect((await failing.lookup('a.example')).error).toMatchObject({ class: 'dns', message: 'ENOTFOUND for a.example' })
  await failing.lookup('a.example')
  expect(failing.asked).toHaveLength(4)
})

test('the cache has a bound', async () => {
  const { lookup, asked } = setup(both, { maxEntries: 2 })
  for (const name of ['a', 'b', 'c', 'c', 'b', 'a']) await lookup(`${name}.example`)
  expect(asked.filter((question) => question.endsWith('/4'))).toEqual([
    'a.example/4',
    'b.example/4',
    'c.example/4',
    'a.example/4',
  ])
})

test('a hanging name ends at the time-out and holds up no other', async () => {
  const { clock, lookup } = setup((name, family) =>
    name === 'hang.example' ? new Promise(() => {}) : both(name, family),
  )
  const hanging = Array.from({ length: 50 }, () => lookup('hang.example'))
  expect((await lookup('a.example')).error).toBeNull()
  await clock.pass(2000)
  for (const result of await Promise.all(hanging))
    expect(result.error).toMatchObject({ class: 'dns', message: expect.stringMatching(/within 2000 ms/) })
  expect(clock.waiting).toBe(0)
})

test('one family that hangs or fails does not keep the other one back for long', async () => {
  const hangs = setup((name, family) => (family === 6 ? new Promise(() => {}) : both(name, family)))
  const result = hangs.lookup('a.example')
  await hangs.clock.pass(150)
  expect(await result).toEqual({ error: null, addresses: ['1.1.1.1'] })
  const missing = setup((name, family) => (family === 6 ? fails('ENODATA')(name, family) : both(name, family)))
  expect(await missing.lookup('a.example')).toEqual({ error: null, addresses: ['1.1.1.1'] })
})

test('a name with no addresses at all says so', async () => {
  const { lookup } = setup(async () => [])
  expect((await lookup('a.example')).error).toMatchObject({ class: 'dns', message: 'a.example has no addresses' })
})

test('the hosts file and localhost need no lookup', async () => {
  const { lookup, asked } = setup(both)
  expect((await lookup('db.corp')).addresses).toEqual(['10.9.8.7'])
  expect((await lookup('localhost')).addresses).toEqual(['127.0.0.1', '::1'])
  expect(asked).toEqual([])
})
