import { describe, expect, test } from 'vitest'
import { Executor } from '../../src/pipeline/executor.ts'
import type { ExecutorLimits } from '../../src/pipeline/executor-limits.ts'
import type { Work, WorkOwner } from '../../src/pipeline/work.ts'
import { FakeClock } from '../sim/fake-clock.ts'

const wide: ExecutorLimits = {
  maxInFlight: 10,
  maxInFlightBytes: 1e9,
  retryShare: 0.3,
  maxPerSubscription: 100,
  maxPerOrigin: 100,
  maxPerOriginPerSecond: null,
  leased: () => true,
}

/** What runs and how much of it at once, by subscription, source and origin. */
class Desk {
  readonly open = new Set<Work>()
  readonly started: string[] = []
  readonly executor: Executor
  readonly #owner: WorkOwner = { begin: () => 'go' }
  #n = 0

  constructor(
    limits: Partial<ExecutorLimits> = {},
    of: (id: string) => { origin?: string; maxInFlight?: number } = () => ({}),
  ) {
    this.executor = new Executor(
      { ...wide, ...limits },
      new FakeClock(),
      (id) => ({ origin: `https://${id}.test`, maxInFlight: 100, rate: null, lanes: 1, ready: null, ...of(id) }),
      (work) => {
        this.open.add(work)
        this.started.push(`${work.delivery.subscriptionId} ${work.source}`)
      },
    )
  }

  offer(
    id: string,
    source: Work['source'] = 'deliveries',
    more: { bytes?: number; owner?: WorkOwner; line?: string; stream?: string } = {},
  ): Work {
    const line = more.line === undefined ? null : { ordered: true, key: more.line }
    const origin = { stream: more.stream ?? 'events/0', generation: 1, offset: this.#n }
    const delivery = {
      id: `d${this.#n++}`,
      subscriptionId: id,
      attempts: 0,
      body: Buffer.alloc(more.bytes ?? 0),
      origin,
    }
    const work = { delivery, bytes: more.bytes ?? 1, line, owner: more.owner ?? this.#owner, source }
    this.executor.offer(work as unknown as Work)
    return work as unknown as Work
  }

  /** Its endpoint is known to be quick: who is not shares half of the slots (`slow-share.ts`). */
  quick(...ids: string[]): this {
    for (const id of ids) this.finish(this.offer(id))
    return this
  }

  finish(work: Work | undefined): void {
    if (work === undefined || !this.open.delete(work)) throw new Error('not open')
    this.executor.finished(work)
  }

  openOf(id: string): Work[] {
    return [...this.open].filter(({ delivery }) => delivery.subscriptionId === id)
  }
}

describe('bounds', () => {
  test('no more POSTs are open than allowed, and each that ends makes room for one', () => {
    const desk = new Desk().quick('a')
    for (let i = 0; i < 25; i++) desk.offer('a')
    expect([desk.open.size, desk.executor.ready]).toEqual([10, 15])
    desk.finish([...desk.open][0])
    expect([desk.open.size, desk.executor.ready]).toEqual([10, 14])
  })

  test('bytes of open POSTs: one that passes the bound is the last until there is room', () => {
    const desk = new Desk({ maxInFlightBytes: 1_000 })
    for (let i = 0; i < 5; i++) desk.offer('a', 'deliveries', { bytes: 600 })
    expect(desk.open.size).toBe(2)
    desk.finish([...desk.open][0])
    expect(desk.open.size).toBe(2)
  })

  test('a subscription has no more open than it and the configuration allow; others are not held up', () => {
    const desk = new Desk({ maxPerSubscription: 4 }, (id) => ({ maxInFlight: id === 'shy' ? 2 : 100 })).quick(
      'shy',
      'bold',
    )
    for (let i = 0; i < 6; i++) desk.offer('shy')
    for (let i = 0; i < 6; i++) desk.offer('bold')
    expect([desk.openOf('shy').length, desk.openOf('bold').length]).toEqual([2, 4])
    desk.finish(desk.openOf('shy')[0])
    expect(desk.openOf('shy').length).toBe(2)
  })

  test('an origin has no more open than allowed, over all its subscriptions, and each of them gets its turn', () => {
    const desk = new Desk({ maxPerOrigin: 3 }, (id) => ({
      origin: id === 'else' ? 'https://else.test' : 'https://one.test',
    }))
    for (const id of ['a', 'b', 'c', 'd']) for (let i = 0; i < 5; i++) desk.offer(id)
    desk.offer('else')
    expect(desk.open.size).toBe(4)
    const served = new Set<string>()
    for (let i = 0; i < 20; i++) {
      const next = [...desk.open].find(({ delivery }) => delivery.subscriptionId !== 'else') as Work
      served.add(next.delivery.subscriptionId)
      desk.finish(next)
      expect([...desk.open].filter(({ delivery }) => delivery.subscriptionId !== 'else').length).toBeLessThanOrEqual(3)
    }
    expect([...served].sort()).toEqual(['a', 'b', 'c', 'd'])
    expect(desk.executor.ready).toBe(0)
  })
})

describe('retries and first attempts', () => {
  test('while first attempts wait, retries and lines hold at most their share', () => {
    const desk = new Desk({ retryShare: 0.3 }).quick('first', 'again')
    // Something holds every slot, so that all that follows has to wait.
    const holders = Array.from({ length: 10 }, () => desk.offer('first'))
    for (let i = 0; i < 20; i++) desk.offer('again', i % 2 === 0 ? 'tier' : 'parked')
    for (let i = 0; i < 20; i++) desk.offer('first')
    for (const holder of holders) desk.finish(holder)
    expect([desk.openOf('again').length, desk.openOf('first').length]).toEqual([3, 7])
  })

  test('their share is theirs also while first attempts never end coming', () => {
    const desk = new Desk({ retryShare: 0.3 }).quick('first', 'again')
    for (let i = 0; i < 40; i++) desk.offer('first')
    for (let i = 0; i < 5; i++) desk.offer('again', 'tier')
    for (let i = 0; i < 10; i++) desk.finish(desk.openOf('first')[0])
    expect(desk.openOf('again').length).toBe(3)
  })

  test('with no first attempt waiting they may have everything', () => {
    const desk = new Desk({ retryShare: 0.3 }).quick('again')
    for (let i = 0; i < 20; i++) desk.offer('again', 'tier')
    expect(desk.open.size).toBe(10)
  })
})

describe('replays and live traffic', () => {
  const replayed = { stream: 'job:r1:events/0' }

  test('while live first attempts wait, what jobs wrote holds at most the share of retries, with them', () => {
    const desk = new Desk({ retryShare: 0.3 }).quick('live', 'past', 'again')
    const holders = Array.from({ length: 10 }, () => desk.offer('live'))
    for (let i = 0; i < 20; i++) desk.offer('past', 'deliveries', replayed)
    desk.offer('again', 'tier')
    for (let i = 0; i < 20; i++) desk.offer('live')
    for (const holder of holders) desk.finish(holder)
    expect([desk.openOf('again').length, desk.openOf('past').length, desk.openOf('live').length]).toEqual([1, 2, 7])
  })

  test('a retry goes before what jobs wrote', () => {
    const desk = new Desk({ maxInFlight: 1 }).quick('past', 'again')
    const holder = desk.offer('past', 'deliveries', replayed)
    for (let i = 0; i < 5; i++) desk.offer('past', 'deliveries', replayed)
    desk.offer('again', 'tier')
    desk.finish(holder)
    expect(desk.openOf('again').length).toBe(1)
  })

  test('with no live one waiting a replay may have everything', () => {
    const desk = new Desk({ retryShare: 0.3 }).quick('past')
    for (let i = 0; i < 20; i++) desk.offer('past', 'deliveries', replayed)
    expect(desk.open.size).toBe(10)
    expect(desk.executor.ready).toBe(10)
  })
})

describe('gates', () => {
  test('one delivery never has two open POSTs, and an ordered line never two: what comes again waits for the first to end', () => {
    const desk = new Desk()
    const first = desk.offer('a', 'deliveries', { line: 'a/k' })
    desk.offer('a', 'deliveries', { line: 'a/k' })
    expect(desk.open.size).toBe(1)
    desk.finish(first)
    expect(desk.open.size).toBe(1)
  })

  test('nothing starts while the lease is stale, suspended, or the owner has no use for it any more', () => {
    let leased = false
    const desk = new Desk({ leased: () => leased })
    desk.offer('a')
    expect(desk.open.size).toBe(0)
    leased = true
    desk.executor.suspend()
    desk.executor.pump()
    expect(desk.open.size).toBe(0)
    desk.executor.resume()
    expect(desk.open.size).toBe(1)
    desk.offer('a', 'deliveries', { owner: { begin: () => 'dropped' } })
    expect([desk.open.size, desk.executor.ready]).toEqual([1, 0])
  })

  test('an owner takes back what waits, of one subscription or all, in order, and nobody else’s', () => {
    const desk = new Desk({ maxInFlight: 1 })
    const mine: WorkOwner = { begin: () => 'go' }
    desk.offer('a')
    const works = ['a', 'b', 'a'].map((id) => desk.offer(id, 'deliveries', { owner: mine }))
    desk.offer('b')
    expect(desk.executor.withdraw(mine, 'a')).toEqual([works[0], works[2]])
    expect(desk.executor.withdraw(mine)).toEqual([works[1]])
    expect(desk.executor.ready).toBe(1)
  })
})
