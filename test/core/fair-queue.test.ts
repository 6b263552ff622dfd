import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FairQueue } from '../../src/core/fair-queue.ts'

interface Item {
  readonly flow: string
  readonly cost: number
  readonly n: number
}

const run = () => 'run' as const

function takeAll(queue: FairQueue<Item>, may: (item: Item) => 'run' | 'set-aside' = run): Item[] {
  const taken: Item[] = []
  for (let item = queue.take(may); item !== null; item = queue.take(may)) taken.push(item)
  return taken
}

test('200,000 of one flow delay the first of another by one turn', () => {
  const queue = new FairQueue<Item>(100)
  for (let n = 0; n < 200_000; n++) queue.push({ flow: 'crowd', cost: 20, n })
  queue.push({ flow: 'single', cost: 20, n: 0 })
  const first = Array.from({ length: 6 }, () => (queue.take(run) as Item).flow)
  expect(first).toContain('single')
})

test('flows share by cost: who sends bodies four times as large sends a quarter as many', () => {
  const queue = new FairQueue<Item>(1_000)
  for (let n = 0; n < 10_000; n++) {
    queue.push({ flow: 'large', cost: 400, n })
    queue.push({ flow: 'small', cost: 100, n })
  }
  const counts = { large: 0, small: 0 }
  for (let i = 0; i < 5_000; i++) counts[(queue.take(run) as Item).flow as 'large' | 'small']++
  expect(counts.small / counts.large).toBeGreaterThan(3.8)
  expect(counts.small / counts.large).toBeLessThan(4.2)
})

test('a head dearer than many turns gets through while others go on', () => {
  const queue = new FairQueue<Item>(10)
  queue.push({ flow: 'dear', cost: 1_000, n: 0 })
  for (let n = 0; n < 500; n++) queue.push({ flow: 'cheap', cost: 10, n })
  const taken = takeAll(queue).map(({ flow }) => flow)
  expect(taken.indexOf('dear')).toBeGreaterThan(90)
  expect(taken.indexOf('dear')).toBeLessThan(110)
})

test('a flow set aside is asked again only when it is woken, and keeps its order', () => {
  const queue = new FairQueue<Item>(100)
  for (let n = 0; n < 3; n++) queue.push({ flow: 'a', cost: 1, n })
  queue.push({ flow: 'b', cost: 1, n: 0 })
  let asked = 0
  const may = ({ flow }: Item) => {
    if (flow !== 'a') return 'run' as const
    asked++
    return 'set-aside' as const
  }
  expect(takeAll(queue, may)).toEqual([{ flow: 'b', cost: 1, n: 0 }])
  expect(takeAll(queue, may)).toEqual([])
  expect(asked).toBe(1)
  queue.push({ flow: 'a', cost: 1, n: 3 })
  expect(takeAll(queue)).toEqual([])
  queue.wake('a')
  expect(takeAll(queue).map(({ n }) => n)).toEqual([0, 1, 2, 3])
})

test('whatever is pushed, taken, removed, set aside and woken: nothing is lost or doubled, and each flow keeps its order', () => {
  const flow = fc.constantFrom('a', 'b', 'c', 'd')
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ t: fc.constant('push' as const), flow, cost: fc.integer({ min: 1, max: 50 }) }),
    },
    { weight: 3, arbitrary: fc.record({ t: fc.constant('take' as const), bar: fc.option(flow) }) },
    { weight: 1, arbitrary: fc.record({ t: fc.constant('remove' as const), flow, even: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ t: fc.constant('wake' as const), flow }) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const queue = new FairQueue<Item>(16)
      const model = new Map<string, Item[]>()
      let n = 0
      for (const s of steps) {
        if (s.t === 'push') {
          const item = { flow: s.flow, cost: s.cost, n: n++ }
          queue.push(item)
          model.set(s.flow, [...(model.get(s.flow) ?? []), item])
        } else if (s.t === 'take') {
          const item = queue.take(({ flow }) => (flow === s.bar ? 'set-aside' : 'run'))
          if (item !== null) expect(model.get(item.flow)?.shift()).toBe(item)
        } else if (s.t === 'remove') {
          const match = (item: Item) => (item.n % 2 === 0) === s.even
          const items = model.get(s.flow) ?? []
          expect(queue.removeFrom(s.flow, match)).toEqual(items.filter(match))
          model.set(
            s.flow,
            items.filter((item) => !match(item)),
          )
        } else queue.wake(s.flow)
        expect(queue.size).toBe([...model.values()].reduce((sum, items) => sum + items.length, 0))
      }
      for (const flow of model.keys()) queue.wake(flow)
      for (const item of takeAll(queue)) expect(model.get(item.flow)?.shift()).toBe(item)
      expect([...model.values()].flat()).toEqual([])
    }),
    { numRuns: 500 },
  )
})
