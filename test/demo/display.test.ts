import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { Display, type Progress } from '../../src/demo/display.ts'

const progress: Progress = {
  produced: 10,
  events: 20,
  inFlight: 3,
  subscriptions: [{ id: 'plain', expected: 10, standing: { settled: 5, dead: 1, attempts: 7 } }],
  tiers: [{ tier: 'retry-500ms', held: 2, lowestDueMs: 1400, promoted: 0 }],
}

function show(isTTY: boolean, timesMs: readonly number[]): string[] {
  let nowMs = 0
  const written: string[] = []
  const clock = { now: () => 1000, mono: () => nowMs, after: () => () => undefined, random: () => 0 }
  const display = new Display({ write: (text) => void written.push(String(text)), isTTY, columns: 60 }, clock)
  for (const at of timesMs) {
    nowMs = at
    display.show(progress)
  }
  display.end()
  return written
}

test('without a terminal: one line each two seconds, with all that is under way', () => {
  expect(show(false, [0, 1000, 1999, 2500])).toEqual([
    ' 0ms  10 of 20 events, 5 deliveries settled (1 dead), 3 in flight, waiting: 2 in retry-500ms (next in 400ms)\n',
    '  2s  10 of 20 events, 5 deliveries settled (1 dead), 3 in flight, waiting: 2 in retry-500ms (next in 400ms)\n',
  ])
})

test('on a terminal: redrawn in place, no line wider than it, and taken away at the end', () => {
  const [first = '', second = '', end = ''] = show(true, [0, 300])
  const lines = first.split('\n').length - 1
  expect(lines).toBe(4)
  expect(first).toContain('waiting: 2 in retry-500ms')
  for (const line of first.split('\n')) expect(stripVTControlCharacters(line).length).toBeLessThan(60)
  expect(second.startsWith(`\u001b[${lines}A`)).toBe(true)
  expect(end).toBe(`\u001b[${lines}A\u001b[J`)
})
