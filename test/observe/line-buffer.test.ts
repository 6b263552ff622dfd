import { describe, expect, it } from 'vitest'
import { LineBuffer } from '../../src/observe/line-buffer.ts'
import { FakeClock } from '../sim/fake-clock.ts'

describe('line buffer', () => {
  const make = (isTTY = false) => {
    const written: string[] = []
    const clock = new FakeClock()
    return { written, clock, buffer: new LineBuffer({ write: (text) => written.push(text), isTTY }, clock) }
  }

  it('writes what came within a tenth of a second in one go, in order', async () => {
    const { written, clock, buffer } = make()
    buffer.write('a\n')
    await clock.advance(50)
    buffer.write('b\n')
    expect(written).toEqual([])
    await clock.advance(50)
    expect(written).toEqual(['a\nb\n'])
    buffer.write('c\n')
    await clock.advance(100)
    expect(written).toEqual(['a\nb\n', 'c\n'])
  })

  it('writes at once when it is full, asked to, or on a terminal', () => {
    const { written, buffer } = make()
    buffer.write('x'.repeat(70_000))
    expect(written).toHaveLength(1)
    buffer.write('last words\n')
    buffer.flush()
    buffer.flush()
    expect(written.at(-1)).toBe('last words\n')
    expect(written).toHaveLength(2)
    const terminal = make(true)
    terminal.buffer.write('now\n')
    expect(terminal.written).toEqual(['now\n'])
  })
})
