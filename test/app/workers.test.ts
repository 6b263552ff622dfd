import { describe, expect, test } from 'vitest'
import { type WorkerEnd, Workers } from '../../src/app/workers.ts'
import { FakeClock } from '../sim/fake-clock.ts'

/** Two workers whose ends the test decides. */
function fleet() {
  const clock = new FakeClock()
  const lines: { name: string; fields: Record<string, unknown> }[] = []
  const started: { index: number; told: string[]; end(end: WorkerEnd): void }[] = []
  const observer = {
    log: (_level: string, name: string, fields = {}) => void lines.push({ name, fields }),
    count: () => undefined,
    time: () => undefined,
  }
  const workers = new Workers({
    count: 2,
    clock,
    observer,
    start(index) {
      const { promise, resolve } = Promise.withResolvers<WorkerEnd>()
      const told: string[] = []
      started.push({ index, told, end: resolve })
      return { pid: 100 + started.length, ended: promise, tell: (word) => void told.push(word) }
    },
  })
  return { clock, lines, started, workers, run: workers.run() }
}

describe('workers', () => {
  test('a stop is told to all; the end is theirs, with exit code 0', async () => {
    const { started, workers, run } = fleet()
    workers.stop()
    expect(started.map(({ told }) => told)).toEqual([['stop'], ['stop']])
    for (const { end } of started) end({ code: 0, signal: null })
    expect(await run).toBe(0)
    expect(started).toHaveLength(2)
  })

  test('one that could not end in peace gives its exit code to the whole', async () => {
    const { started, workers, run } = fleet()
    workers.abort()
    expect(started.map(({ told }) => told)).toEqual([
      ['stop', 'abort'],
      ['stop', 'abort'],
    ])
    started[0]?.end({ code: 70, signal: null })
    started[1]?.end({ code: 0, signal: null })
    expect(await run).toBe(70)
  })

  test('one that can not start ends the others and gives its exit code', async () => {
    const { started, run, lines } = fleet()
    started[1]?.end({ code: 2, signal: null })
    await Promise.resolve()
    await Promise.resolve()
    expect(started[0]?.told).toEqual(['stop'])
    started[0]?.end({ code: 0, signal: null })
    expect(await run).toBe(2)
    expect(lines.map(({ name }) => name)).toContain('worker.not_started')
  })

  test('one that dies is started again, after ever longer pauses, and with the first one after a minute of peace', async () => {
    const { clock, started, workers, run, lines } = fleet()
    const pauses = () => lines.filter(({ name }) => name === 'worker.ended').map(({ fields }) => fields.againInMs)
    for (const ranMs of [30_000, 10, 10, 60_000]) {
      await clock.advance(ranMs)
      started.findLast(({ index }) => index === 0)?.end({ code: null, signal: 'SIGKILL' })
      await clock.advance(31_000)
    }
    expect(pauses()).toEqual([1_000, 2_000, 4_000, 1_000])
    expect(started.filter(({ index }) => index === 0)).toHaveLength(5)
    expect(started.filter(({ index }) => index === 1)).toHaveLength(1)
    workers.stop()
    for (const { end } of started) end({ code: 0, signal: null })
    expect(await run).toBe(0)
  })

  test('a stop while one waits to be started again starts it no more', async () => {
    const { clock, started, workers, run } = fleet()
    started[0]?.end({ code: null, signal: 'SIGKILL' })
    await clock.advance(10)
    workers.stop()
    started[1]?.end({ code: 0, signal: null })
    expect(await run).toBe(0)
    expect(started).toHaveLength(2)
  })
})
