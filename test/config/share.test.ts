import { expect, test } from 'vitest'
import { workerShare } from '../../src/config/share.ts'
import { loadConfig } from '../../src/config.ts'

const { config } = loadConfig({
  overrides: { deliverer: { maxInFlight: 300, perOrigin: 64, perOriginPerSecond: 10 }, observe: { port: 9400 } },
})

test('the workers of a machine together have the bounds of one process, and a port each', () => {
  const shares = [0, 1, 2].map((index) => workerShare(config, { index, count: 3 }))
  expect(shares.map(({ observe }) => observe.port)).toEqual([9400, 9401, 9402])
  for (const key of ['maxInFlight', 'maxInFlightBytes', 'perOrigin', 'maxBufferBytes'] as const) {
    const sum = shares.reduce((total, { deliverer }) => total + deliverer[key], 0)
    expect([key, sum <= config.deliverer[key], sum > config.deliverer[key] - 3]).toEqual([key, true, true])
  }
  expect(shares.map(({ deliverer }) => deliverer.perOriginPerSecond)).toEqual([10 / 3, 10 / 3, 10 / 3])
  expect(shares.map(({ deliverer }) => deliverer.bufferPerLane)).toEqual(
    shares.map(() => config.deliverer.bufferPerLane),
  )
})

test('what can not be divided further stays usable; port 0 stays any free one', () => {
  const { deliverer, observe } = workerShare(
    {
      ...config,
      deliverer: { ...config.deliverer, maxInFlight: 2, perOrigin: 1 },
      observe: { ...config.observe, port: 0 },
    },
    { index: 5, count: 64 },
  )
  expect([deliverer.maxInFlight, deliverer.perOrigin, observe.port]).toEqual([1, 1, 0])
  expect(deliverer.maxBufferBytes).toBeGreaterThanOrEqual(8 * 1024 * 1024)
})
