import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OffsetTracker, spanLimits } from '../../src/core/offset-tracker.ts'

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

/** So narrow that all three ways to write it down are taken. */
const narrow = { max: 256, bits: 32, metadata: 24 }

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
        let tracker = new OffsetTracker(start, narrow)
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
              const { metadata, beside } = tracker.marks()
              const restored = OffsetTracker.restore(tracker.base, metadata, narrow, beside)
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
    const second = OffsetTracker.restore(10, first.marks().metadata).tracker
    expect(second.marks()).toEqual(first.marks())
    expect([10, 11, 12, 13].map((o) => second.see(o))).toEqual([true, false, true, false])
  })

  it('fits the broker’s 4,096 characters up to a span of 16,384, whatever is done', () => {
    const tracker = new OffsetTracker(0)
    for (let o = 0; o < 16_384; o++) tracker.see(o)
    for (let o = 1; o < 16_384; o += 2) tracker.done(o)
    expect(tracker.base).toBe(0)
    expect(tracker.marks()).toMatchObject({ beside: null })
    expect(tracker.marks().metadata.length).toBeLessThanOrEqual(2_735)
  })

  it('stops at its span', () => {
    const tracker = new OffsetTracker(0)
    let offset = 0
    for (; tracker.admits(offset); offset++) tracker.see(offset)
    expect(offset).toBe(1 << 20)
  })

  it('says long runs of a wide span in the metadata, and writes beside it what has no room there', () => {
    const tracker = new OffsetTracker(5)
    for (let o = 5; o < 300_000; o++) tracker.see(o)
    for (let o = 1_000; o < 300_000; o += 5_000) tracker.done(o)
    const few = tracker.marks()
    expect(few.beside).toBeNull()
    expect(few.metadata.length).toBeLessThan(400)
    for (let o = 1_000; o < 300_000; o += 40) tracker.done(o)
    const many = tracker.marks()
    expect(many.metadata.length).toBeLessThan(10)
    expect(many.beside?.length).toBeGreaterThan(4_000)
    for (const { metadata, beside } of [few, many]) {
      expect(OffsetTracker.restore(5, metadata, spanLimits, beside).understood).toBe(true)
    }
    expect(OffsetTracker.restore(5, many.metadata, spanLimits, null).understood).toBe(false)
    const second = OffsetTracker.restore(5, many.metadata, spanLimits, many.beside).tracker
    expect(second.marks()).toEqual(many)
    for (let o = 5; o < 300_000; o++) if (second.see(o) === tracker.isDone(o)) throw new Error(`offset ${o}`)
  })

  it('agrees with a naive model over wide spans that are finished in blocks', () => {
    const block = fc.record({ at: fc.nat(90_000), length: fc.nat(30_000) })
    fc.assert(
      fc.property(fc.nat(100_000), fc.array(block, { maxLength: 8 }), (start, blocks) => {
        const tracker = new OffsetTracker(start)
        const naive = new Naive(start)
        for (let o = start; o < start + 100_000; o++) tracker.see(o)
        naive.next = start + 100_000
        for (const { at, length } of blocks) {
          for (let o = start + at; o < start + at + length; o++) {
            tracker.done(o)
            naive.done.add(o)
          }
        }
        naive.advance()
        expect(tracker.base).toBe(naive.base)
        const { metadata, beside } = tracker.marks()
        const second = OffsetTracker.restore(tracker.base, metadata, spanLimits, beside).tracker
        for (let o = tracker.base; o < start + 100_000; o++) {
          if (second.see(o) !== !naive.done.has(o)) throw new Error(`offset ${o}`)
        }
      }),
      { numRuns: 20 },
    )
  })

  it.each([
    ['text of another program', false],
    ['h1:####', false],
    ['h1:QUI', false],
    ['h2:AAAA', false],
    ['h2:gA==', false],
    ['h2:////////////', false],
    ['h3:', false],
    ['h4:AAAA', false],
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
