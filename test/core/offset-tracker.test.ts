import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OffsetTracker } from '../../src/core/offset-tracker.ts'

/** The obvious implementation: sets of numbers. */
class Naive {
  base: number
  next: number
  done = new Set<number>()
  constructor(start: number) {
    this.base = start
    this.next = start
  }
  see(offset: number): boolean {
    if (offset < this.next) return false
    this.pass(offset)
    this.next = offset + 1
    const fresh = !this.done.has(offset)
    this.advance()
    return fresh
  }
  pass(to: number): void {
    for (let o = this.next; o < to; o++) this.done.add(o)
    this.next = Math.max(this.next, to)
    this.advance()
  }
  finish(offset: number): void {
    if (offset < this.next) this.done.add(offset)
    this.advance()
  }
  advance(): void {
    while (this.base < this.next && this.done.has(this.base)) this.base++
  }
}

const step = fc.oneof(
  fc.record({ t: fc.constant('see' as const), gap: fc.nat(6) }),
  fc.record({ t: fc.constant('again' as const), back: fc.nat(40) }),
  fc.record({ t: fc.constant('done' as const), pick: fc.nat(1000) }),
  fc.record({ t: fc.constant('pass' as const), gap: fc.nat(200) }),
  fc.record({ t: fc.constant('restart' as const) }),
)

describe('offset tracker', () => {
  it('agrees with a naive model over gaps, repeats, any completion order and restarts from its own metadata', () => {
    fc.assert(
      fc.property(fc.nat(1_000_000), fc.array(step, { maxLength: 200 }), (start, steps) => {
        let tracker = new OffsetTracker(start, 256)
        const naive = new Naive(start)
        for (const s of steps) {
          switch (s.t) {
            case 'see': {
              const offset = tracker.next + s.gap
              if (!tracker.admits(offset)) break
              expect(tracker.see(offset)).toBe(naive.see(offset))
              break
            }
            case 'again':
              if (tracker.next - s.back - 1 >= start) expect(tracker.see(tracker.next - s.back - 1)).toBe(false)
              break
            case 'done': {
              if (tracker.span === 0) break
              const offset = tracker.base + (s.pick % tracker.span)
              tracker.done(offset)
              naive.finish(offset)
              break
            }
            case 'pass': {
              const to = tracker.next + s.gap
              if (!tracker.admits(to)) break
              tracker.pass(to)
              naive.pass(to)
              break
            }
            case 'restart': {
              const metadata = tracker.metadata()
              const restored = OffsetTracker.restore(tracker.base, metadata, 256)
              expect(restored.understood).toBe(true)
              tracker = restored.tracker
              naive.next = naive.base
              break
            }
          }
          expect(tracker.base).toBe(naive.base)
          expect(tracker.next).toBe(naive.next)
          expect(tracker.span).toBeLessThanOrEqual(256)
          for (let o = tracker.base; o < tracker.next; o++) expect(tracker.isDone(o)).toBe(naive.done.has(o))
        }
      }),
      { numRuns: 500 },
    )
  })

  it('keeps what a predecessor finished in the metadata until it has read past it', () => {
    const first = new OffsetTracker(10)
    for (const o of [10, 11, 12, 13]) first.see(o)
    first.done(11)
    first.done(13)
    const second = OffsetTracker.restore(10, first.metadata()).tracker
    expect(second.metadata()).toBe(first.metadata())
    expect([10, 11, 12, 13].map((o) => second.see(o))).toEqual([true, false, true, false])
  })

  it('fits the broker’s 4,096 characters at the widest span', () => {
    const tracker = new OffsetTracker(0)
    let offset = 0
    for (; tracker.admits(offset); offset++) tracker.see(offset)
    expect(offset).toBe(16_384)
    for (let o = 1; o < offset; o++) tracker.done(o)
    expect(tracker.base).toBe(0)
    expect(tracker.metadata().length).toBeLessThanOrEqual(2_735)
  })

  it.each([
    ['text of another program', false],
    ['h1:####', false],
    ['h1:QUI', false],
    ['h2:AAAA', false],
    [`h1:${'A'.repeat(4092)}`, false],
    ['', true],
    ['h1:', true],
  ])('starts from the offset alone on foreign metadata %j', (metadata, understood) => {
    const restored = OffsetTracker.restore(7, metadata)
    expect(restored.understood).toBe(understood)
    expect(restored.tracker.base).toBe(7)
    expect(restored.tracker.see(7)).toBe(true)
  })

  it('jumps over a gap of any size when nothing is open', () => {
    const tracker = new OffsetTracker(0)
    tracker.see(0)
    tracker.done(0)
    tracker.pass(5_000_000_000)
    expect(tracker.base).toBe(5_000_000_000)
    expect(tracker.see(5_000_000_000)).toBe(true)
  })
})
