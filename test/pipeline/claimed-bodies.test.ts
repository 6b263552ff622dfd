import { describe, expect, test } from 'vitest'
import { type Claim, claimFor } from '../../src/core/claim.ts'
import { ClaimedBodies } from '../../src/pipeline/claimed-bodies.ts'
import { Executor } from '../../src/pipeline/executor.ts'
import type { Work } from '../../src/pipeline/work.ts'
import type { ObjectFound } from '../../src/ports/objects.ts'
import { FakeClock } from '../sim/fake-clock.ts'

const body = Buffer.from('large')
const claim = (n: number): Claim => ({ ...claimFor(body, 0), key: `k/${n}` })

/** An executor whose works fetch bodies from a store that is there or not, and are offered again 200 ms after a failure. */
function desk() {
  const clock = new FakeClock()
  const asked: { key: string; atMs: number }[] = []
  const done: string[] = []
  let answer = (_: Claim): ObjectFound => ({ t: 'unavailable', detail: 'not mounted' })
  const claimed = new ClaimedBodies({
    objects: {
      async get(of: Claim) {
        asked.push({ key: of.key, atMs: clock.mono() })
        return answer(of)
      },
      put: async () => undefined,
    } as never,
    clock,
    observer: { log: () => undefined, count: () => undefined, time: () => undefined } as never,
    maxOpenBytes: 1e6,
    fetchMs: 3_000,
    back: () => executor.retryHeld(),
  })
  const executor: Executor = new Executor(
    {
      ...{ maxInFlight: 4, maxInFlightBytes: 1e9, retryShare: 0.3, maxPerSubscription: 100, maxPerOrigin: 100 },
      ...{ maxPerOriginPerSecond: null, leased: () => true },
    },
    clock,
    () => ({ origin: 'https://a.test', maxInFlight: 100, rate: null, lanes: 1, ready: null }),
    (work) => {
      const { claim, id } = work.delivery
      const end = (ok: boolean) => {
        if (ok) done.push(id)
        else clock.after(200, () => executor.offer(work))
        executor.finished(work)
      }
      if (claim === undefined) queueMicrotask(() => end(true))
      else
        void claimed.fetch(claim).then((fetched) => {
          if (fetched.t === 'ready') fetched.release()
          end(fetched.t === 'ready')
        })
    },
    ({ delivery }) => (delivery.claim === undefined ? 0 : claimed.waitMs(delivery.claim)),
  )
  const owner = { begin: () => 'go' }
  const offer = (id: string, of?: Claim) => {
    const delivery = {
      id,
      subscriptionId: 's',
      attempts: 0,
      body: Buffer.alloc(0),
      origin: { stream: 'events/0' },
      ...(of && { claim: of }),
    }
    const work = { delivery, bytes: 1, line: null, owner, source: 'deliveries', readyAtMs: 0 }
    executor.offer(work as unknown as Work)
  }
  const answers = (fn: typeof answer) => {
    answer = fn
  }
  return { clock, asked, done, executor, offer, owner, answers }
}

const found: ObjectFound = { t: 'found', body }

describe('while the object store is away', () => {
  test('it is asked by one at a time, less and less often, and no slot is held: small events go on', async () => {
    const { clock, asked, done, executor, offer } = desk()
    for (let n = 0; n < 50; n++) offer(`c${n}`, claim(n))
    await clock.advance(60_000)
    // Four slots, and two more until the third failure, at the start; then 0.5, 1, 2, 4, 8, 15, 15, … seconds between two.
    const late = asked.filter(({ atMs }) => atMs > 100).map(({ atMs }) => atMs)
    expect(asked.length - late.length).toBeLessThanOrEqual(6)
    expect(late.length).toBeGreaterThanOrEqual(5)
    expect(late.length).toBeLessThanOrEqual(9)
    expect(new Set(late).size).toBe(late.length)
    expect(executor.inFlight).toBe(0)
    expect(executor.startable).toBe(0)
    offer('small')
    await clock.advance(1)
    expect(done).toEqual(['small'])
  })

  test('what waited goes at once when one probe is answered', async () => {
    const { clock, done, offer, answers } = desk()
    for (let n = 0; n < 50; n++) offer(`c${n}`, claim(n))
    await clock.advance(30_000)
    answers(() => found)
    await clock.advance(15_500)
    expect(done.length).toBe(50)
  })

  test('a lane that is lost takes back what is held', async () => {
    const { clock, executor, offer, owner } = desk()
    for (let n = 0; n < 10; n++) offer(`c${n}`, claim(n))
    await clock.advance(5_000)
    expect(executor.withdraw(owner as never).length).toBe(10)
    expect(executor.ready).toBe(0)
  })
})

test('one object that can not be read keeps none of the others waiting', async () => {
  const { clock, asked, done, offer, answers } = desk()
  answers(({ key }) => (key === 'k/0' ? { t: 'unavailable', detail: '403' } : found))
  offer('bad', claim(0))
  for (let n = 1; n < 40; n++) {
    offer(`c${n}`, claim(n))
    await clock.advance(100)
    expect(done.length).toBe(n)
  }
  expect(asked.filter(({ key }) => key === 'k/0').length).toBeLessThanOrEqual(4)
})
