import { describe, expect, test } from 'vitest'
import { matchAgeMs, settledMs } from '../../src/core/freshness.ts'
import type { InRecord } from '../../src/core/record.ts'
import { Table } from '../../src/pipeline/table.ts'
import type { LogReader } from '../../src/ports.ts'
import { FakeClock } from '../sim/fake-clock.ts'

/** A topic of one partition whose broker takes 2 ms to answer; the follower sees a record `followMs` after it was appended. */
function world(followMs: number) {
  const clock = new FakeClock()
  const log: { key: string; seenAtMs: number }[] = []
  let asked = 0
  const later = <T>(ms: number, make: () => T) => new Promise<T>((resolve) => clock.after(ms, () => resolve(make())))
  const askReader = {
    starts: () => later(2, () => new Map([[0, 0]])),
    ends() {
      asked++
      return later(2, () => new Map([[0, log.length]]))
    },
  } as unknown as LogReader
  const followReader = {
    fetch: ({ from }: { from: number }) =>
      later(2, () => {
        const visible = log.filter(({ seenAtMs }) => seenAtMs <= clock.mono()).length
        const records = log
          .slice(from, visible)
          .map(({ key }, i) => ({ offset: from + i, key: Buffer.from(key) }) as InRecord)
        return { topic: 't', partition: 0, records, nextOffset: Math.max(from, visible), highWatermark: log.length }
      }),
  } as unknown as LogReader
  const known: string[] = []
  const observer = { log: () => undefined, count: () => undefined, time: () => undefined }
  const table = new Table({
    ...{ topic: 't', clock, observer, followReader, askReader },
    apply: ({ key }) => void known.push(String(key)),
  })
  return {
    ...{ clock, table, known },
    asked: () => asked,
    append: (key: string) => void log.push({ key, seenAtMs: clock.mono() + followMs }),
  }
}

describe('a table that is to be fresh', () => {
  test('with no age allowed, everything that stood in the topic at the call is known', async () => {
    const { clock, table, known, append } = world(40)
    await clock.drive(table.load())
    append('a')
    await clock.drive(table.freshen())
    expect(known).toEqual(['a'])
    table.stop()
  })

  test('at a steady pace nobody waits, and the broker is asked by time, not by call', async () => {
    const { clock, table, asked } = world(1)
    await clock.drive(table.load())
    await clock.drive(table.freshen(matchAgeMs))
    const before = asked()
    for (let i = 0; i < 100; i++) {
      const at = clock.mono()
      await clock.drive(table.freshen(matchAgeMs))
      expect(clock.mono()).toBe(at)
      await clock.advance(5)
    }
    expect(asked() - before).toBeGreaterThanOrEqual(10)
    expect(asked() - before).toBeLessThanOrEqual(21)
    table.stop()
  })

  test('what a writer has called done is known to whoever matches later, however slowly it is followed', async () => {
    for (const followMs of [0, 30, 200]) {
      for (let wait = 0; wait < 60; wait += 7) {
        const { clock, table, known, append } = world(followMs)
        await clock.drive(table.load())
        await clock.drive(table.freshen(matchAgeMs))
        await clock.advance(wait)
        append('new')
        await clock.advance(settledMs)
        await clock.drive(table.freshen(matchAgeMs))
        expect([followMs, wait, known]).toEqual([followMs, wait, ['new']])
        table.stop()
      }
    }
  })

  test('after a pause the caller waits', async () => {
    const { clock, table, known, append } = world(10)
    await clock.drive(table.load())
    await clock.drive(table.freshen(matchAgeMs))
    await clock.advance(1_000)
    append('late')
    await clock.drive(table.freshen(matchAgeMs))
    expect(known).toEqual(['late'])
    table.stop()
  })
})
