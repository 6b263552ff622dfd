import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Circuit, type CircuitPolicy } from '../../src/core/circuit.ts'

const policy: CircuitPolicy = {
  failures: 3,
  failureRate: 0.5,
  minSamples: 10,
  windowMs: 10_000,
  openMs: 1_000,
  maxOpenMs: 8_000,
}
/** The middle of the jitter: exactly the time named. */
const mid = 0.5

function opened(): Circuit {
  const circuit = new Circuit(policy)
  for (let i = 0; i < 3; i++) circuit.ended(false, 0, mid)
  return circuit
}

describe('opening', () => {
  test('at so many failures in a row, and not by one less', () => {
    const circuit = new Circuit(policy)
    expect([circuit.ended(false, 0, mid), circuit.ended(false, 0, mid)]).toEqual([false, false])
    expect(circuit.allows(0)).toBe(true)
    expect(circuit.ended(false, 0, mid)).toBe(true)
    expect(circuit.state).toEqual({ t: 'open', untilMs: 1_000, openings: 1 })
    expect(circuit.allows(999)).toBe(false)
  })

  test('a success starts the count anew', () => {
    const circuit = new Circuit(policy)
    for (const ok of [false, false, true, false, false]) expect(circuit.ended(ok, 0, mid)).toBe(false)
  })

  test('at the failure rate of enough samples, and only of recent ones', () => {
    const alternating = (fromMs: number, everyMs: number) => {
      const circuit = new Circuit(policy)
      for (let i = 0; i < 12; i++) if (circuit.ended(i % 2 === 0, fromMs + i * everyMs, mid)) return i + 1
      return null
    }
    expect(alternating(0, 10)).toBe(10)
    expect(alternating(0, 5_000)).toBeNull()
  })

  test('never, where the policy says 0', () => {
    const circuit = new Circuit({ ...policy, failures: 0 })
    for (let i = 0; i < 100; i++) expect(circuit.ended(false, i, mid)).toBe(false)
    expect(circuit.allows(0)).toBe(true)
  })
})

describe('half open', () => {
  test('one probe at a time; an attempt that says nothing gives the place to the next', () => {
    const circuit = opened()
    expect(circuit.allows(1_000)).toBe(true)
    circuit.started()
    expect(circuit.allows(1_000)).toBe(false)
    circuit.undecided()
    expect(circuit.allows(1_000)).toBe(true)
  })

  test('a failed probe opens it for twice as long, up to the longest; a good one closes it', () => {
    const circuit = opened()
    let now = 1_000
    for (const [openings, ms] of [
      [2, 2_000],
      [3, 4_000],
      [4, 8_000],
      [5, 8_000],
    ] as const) {
      expect(circuit.allows(now)).toBe(true)
      circuit.started()
      expect(circuit.ended(false, now, mid)).toBe(true)
      expect(circuit.state).toEqual({ t: 'open', untilMs: now + ms, openings })
      now += ms
    }
    circuit.allows(now)
    circuit.started()
    expect(circuit.ended(true, now, mid)).toBe(true)
    expect(circuit.idle).toBe(true)
  })

  test('the late failure of an attempt from before changes nothing of an open circuit; a late success closes it', () => {
    const circuit = opened()
    const before = circuit.state
    expect(circuit.ended(false, 500, mid)).toBe(false)
    expect(circuit.state).toEqual(before)
    expect(circuit.ended(true, 500, mid)).toBe(true)
    expect(circuit.state.t).toBe('closed')
  })
})

describe('restoring', () => {
  test.each([
    { marks: [[5_000, 2]], untilMs: 5_000 },
    {
      marks: [
        [5_000, 2],
        [9_000, 2],
      ],
      untilMs: 9_000,
    },
    {
      marks: [
        [9_000, 2],
        [5_000, 2],
      ],
      untilMs: 9_000,
    },
    {
      marks: [
        [9_000, 1],
        [5_000, 2],
      ],
      untilMs: 5_000,
    },
    {
      marks: [
        [5_000, 2],
        [9_000, 1],
      ],
      untilMs: 5_000,
    },
  ] as const)('of marks $marks it waits until $untilMs', ({ marks, untilMs }) => {
    const circuit = new Circuit(policy)
    for (const [until, openings] of marks) circuit.restore(until, openings)
    expect(circuit.state).toMatchObject({ t: 'open', untilMs })
    expect([circuit.allows(untilMs - 1), circuit.allows(untilMs)]).toEqual([false, true])
  })
})

test('whatever happens: nothing starts while it is open, and never two probes', () => {
  const step = fc.record({
    what: fc.constantFrom('ask', 'ok', 'failed', 'undecided', 'wait'),
    ms: fc.nat(3_000),
    random: fc.double({ min: 0, max: 0.999, noNaN: true }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const circuit = new Circuit(policy)
      let now = 0
      let probes = 0
      for (const { what, ms, random } of steps) {
        const before = circuit.state
        if (what === 'wait') now += ms
        else if (what === 'ask') {
          if (!circuit.allows(now)) continue
          expect(before.t === 'open' && now < before.untilMs).toBe(false)
          if (circuit.state.t === 'half-open') expect(++probes).toBe(1)
          circuit.started()
        } else {
          if (what === 'undecided') circuit.undecided()
          else circuit.ended(what === 'ok', now, random)
          if (circuit.state.t !== 'half-open' || !circuit.state.probing) probes = 0
          const { state } = circuit
          if (state.t === 'open' && before.t !== 'open') {
            expect(state.untilMs - now).toBeGreaterThanOrEqual(0.8 * policy.openMs)
            expect(state.untilMs - now).toBeLessThanOrEqual(1.2 * policy.maxOpenMs + 1)
          }
        }
      }
    }),
  )
})
