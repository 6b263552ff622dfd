import { describe, expect, test } from 'vitest'
import { sinceArgument } from '../../src/cli/options.ts'
import { createProgress } from '../../src/cli/progress.ts'
import { ago, table } from '../../src/cli/text.ts'
import type { Clock } from '../../src/ports.ts'
import { sink } from './support.ts'

test.each([
  [0, '0ms'],
  [999, '999ms'],
  [1000, '1s'],
  [185_000, '3m05s'],
  [7_800_000, '2h10m'],
  [4 * 86_400_000 + 3 * 3_600_000, '4d03h'],
  [-1500, '-1s'],
])('%d ms is %s', (ms, text) => {
  expect(ago(ms)).toBe(text)
})

test('a table is as wide as its cells, cuts long ones and lets nobody move the cursor', () => {
  const rows = [
    ['a', '1', 'x'],
    ['b\u001b[2J', '22', 'abcdefgh'],
  ]
  expect(table([{ title: 'NAME' }, { title: 'N', right: true }, { title: 'T', max: 5 }], rows)).toBe(
    ['NAME    N  T', 'a       1  x', 'b·[2J  22  abcd…'].join('\n'),
  )
})

describe('since', () => {
  const since = sinceArgument(() => 1_000_000_000)
  test.each([
    ['2h', 1_000_000_000 - 7_200_000],
    ['2026-05-01T10:00:00Z', Date.UTC(2026, 4, 1, 10)],
    ['2026-05-01', Date.UTC(2026, 4, 1)],
  ])('%s', (text, expected) => {
    expect(since(text)).toBe(expected)
  })
  test.each(['yesterday', '', '5', '2026-13-01'])('%j is refused', (text) => {
    expect(() => since(text)).toThrow('Write how long ago')
  })
})

describe('progress', () => {
  function at(isTTY: boolean) {
    let nowMs = 0
    const err = sink(isTTY)
    const clock = { mono: () => nowMs } as Clock
    const progress = createProgress(err.output, clock)
    const run = (untilMs: number, stepMs: number) => {
      for (; nowMs <= untilMs; nowMs += stepMs) progress.update(`${nowMs}`)
    }
    return { run, progress, text: err.text }
  }

  test('without a terminal: one line every 5 s, none for short work', () => {
    const { run, progress, text } = at(false)
    run(4999, 100)
    expect(text()).toBe('')
    run(15_000, 100)
    progress.end()
    expect(text()).toBe('5000\n10000\n15000\n')
  })

  test('on a terminal it is rewritten in place and taken away at the end', () => {
    const { run, progress, text } = at(true)
    run(700, 100)
    progress.end()
    expect(text()).toBe('\r\u001b[K500\r\u001b[K600\r\u001b[K700\r\u001b[K')
  })
})
