import { expect, test } from 'vitest'
import { LaneRunner, type LaneRunnerDeps } from '../../src/pipeline/lane-runner.ts'
import { FakeClock } from '../sim/fake-clock.ts'

/** A lane whose coordinator answers when the test says so. */
function slowCoordinator() {
  const clock = new FakeClock()
  const fences: { answer: () => void; refuse: () => void }[] = []
  let closed = 0
  const deps = {
    world: {
      topics: { deliveries: 'deliveries', tiers: [] },
      clock,
      observer: { log() {}, count() {}, time() {} },
    },
    consumer: { leaseAgeMs: () => -1 },
    transactionalIdPrefix: 'lane.',
    kafka: {
      transactional: () => ({
        fence: () =>
          new Promise<void>((resolve, reject) => {
            fences.push({ answer: resolve, refuse: () => reject(new Error('not now')) })
          }),
        close: async () => {
          closed++
        },
      }),
      offsets: { committed: () => Promise.reject(new Error('not asked for here')) },
    },
    stateReader: { ends: () => Promise.reject(new Error('not asked for here')) },
  } as unknown as LaneRunnerDeps
  return { runner: new LaneRunner(4, deps), fences, clock, closed: () => closed }
}

test('a rejoin waits for a fence on its way: it would fence the next owner if the coordinator got to it later', async () => {
  const { runner, fences, clock } = slowCoordinator()
  runner.gain()
  let held = false
  const holding = runner.hold().then(() => {
    held = true
  })
  await clock.advance(5_000)
  expect({ fences: fences.length, held }).toEqual({ fences: 1, held: false })
  fences[0]?.answer()
  await clock.drive(holding)
  expect(held).toBe(true)
})

test('nothing is fenced while a rejoin is under way, and again once the lane stayed', async () => {
  const { runner, fences, clock } = slowCoordinator()
  runner.gain()
  void runner.hold()
  fences[0]?.refuse()
  await clock.advance(20_000)
  expect(fences).toHaveLength(1)
  runner.keep()
  await clock.advance(20_000)
  expect(fences.length).toBe(2)
})

test('a lane that is lost while it is being gained repeats its fence no more', async () => {
  const { runner, fences, clock, closed } = slowCoordinator()
  runner.gain()
  const lost = runner.lose()
  await clock.drive(lost)
  expect(closed()).toBe(1)
  fences[0]?.refuse()
  await clock.advance(20_000)
  expect(fences).toHaveLength(1)
})
