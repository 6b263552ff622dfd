import { describe, expect, it } from 'vitest'
import { FakeClock } from './fake-clock.ts'
import { SimProcess } from './sim-process.ts'

describe('fake clock', () => {
  it('fires timers by due time, then by creation, and stands exactly at the end', async () => {
    const clock = new FakeClock({ startMs: 1000 })
    const seen: string[] = []
    clock.after(20, () => seen.push(`c@${clock.now()}`))
    clock.after(10, () => seen.push(`a@${clock.now()}`))
    clock.after(10, () => seen.push(`b@${clock.now()}`))
    clock.after(31, () => seen.push('later'))
    await clock.advance(30)
    expect(seen).toEqual(['a@1010', 'b@1010', 'c@1020'])
    expect(clock.now()).toBe(1030)
    expect(clock.pending).toBe(1)
  })

  it('drains promise chains of any length between two timers of the same instant', async () => {
    const clock = new FakeClock()
    const seen: string[] = []
    clock.after(5, () => {
      const long = async () => {
        for (let i = 0; i < 10_000; i++) await null
        seen.push('chain')
      }
      void long()
    })
    clock.after(5, () => seen.push('next timer'))
    await clock.advance(5)
    expect(seen).toEqual(['chain', 'next timer'])
  })

  it('fires a timer set by a timer within the same advance, and not a cancelled one', async () => {
    const clock = new FakeClock()
    const seen: number[] = []
    clock.after(1, () => {
      clock.after(1, () => seen.push(clock.mono()))
      clock.after(1, () => seen.push(-1))()
    })
    await clock.advance(10)
    expect(seen).toEqual([2])
  })

  it('drive returns what the promise comes to, and names a deadlock', async () => {
    const clock = new FakeClock()
    expect(await clock.drive(new Promise((resolve) => clock.after(60_000, () => resolve('done'))))).toBe('done')
    await expect(clock.drive(new Promise(() => {}))).rejects.toThrow(/deadlock/)
  })

  it('gives the same chance from the same seed and another from another', () => {
    const draw = (seed: number) => {
      const clock = new FakeClock({ seed })
      return Array.from({ length: 5 }, () => clock.random())
    }
    expect(draw(7)).toEqual(draw(7))
    expect(draw(7)).not.toEqual(draw(8))
  })

  it('a jump moves wall time only', async () => {
    const clock = new FakeClock({ startMs: 5000 })
    let fired = false
    clock.after(100, () => {
      fired = true
    })
    clock.jump(-1000)
    expect([clock.now(), clock.mono()]).toEqual([4000, 0])
    await clock.advance(100)
    expect(fired).toBe(true)
  })
})

describe('simulated process', () => {
  it('gets nothing once it is killed', async () => {
    const clock = new FakeClock()
    const process = new SimProcess('w', 1, clock, 1)
    const seen: string[] = []
    process.after(10, () => seen.push('timer'))
    process.kill()
    process.enter(() => seen.push('enter'))
    await clock.advance(100)
    expect(seen).toEqual([])
  })

  it('gets what was held back by a stall afterwards, in order, each with its microtasks', async () => {
    const clock = new FakeClock()
    const process = new SimProcess('w', 1, clock, 1)
    const seen: string[] = []
    process.after(10, () => {
      seen.push(`first@${clock.mono()}`)
      void Promise.resolve().then(() => seen.push('microtask of first'))
    })
    process.after(20, () => seen.push('second'))
    const cancel = process.after(30, () => seen.push('cancelled while held back'))
    process.stall(50)
    await clock.advance(40)
    expect(seen).toEqual([])
    cancel()
    await clock.advance(20)
    expect(seen).toEqual(['first@50', 'microtask of first', 'second'])
  })
})
