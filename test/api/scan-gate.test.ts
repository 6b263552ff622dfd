import { expect, test } from 'vitest'
import { ScanGate } from '../../src/api/scan-gate.ts'

test('so many at a time, some wait, the rest is refused; a place is free again after a failure too', async () => {
  const gate = new ScanGate(2, 1)
  let [open, most] = [0, 0]
  const ends: (() => void)[] = []
  const scan = () =>
    gate.pass(async () => {
      most = Math.max(most, ++open)
      await new Promise<void>((resolve) => ends.push(resolve))
      open--
      throw new Error('failed')
    })
  const scans = [scan(), scan(), scan(), scan()].map((one) =>
    one.catch((error: { code?: string }) => error.code ?? 'failed'),
  )
  expect(await scans[3]).toBe('busy')
  for (let i = 0; i < 3; i++) {
    while (ends.length === 0) await new Promise((resolve) => setImmediate(resolve))
    ends.shift()?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(await Promise.all(scans.slice(0, 3))).toEqual(['failed', 'failed', 'failed'])
  expect([most, open]).toEqual([2, 0])
  expect(await gate.pass(async () => 'free')).toBe('free')
})
