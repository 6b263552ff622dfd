import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AssignMember, assignLanes, assignPartitions } from '../../src/core/assign.ts'
import type { TopicPartition } from '../../src/core/record.ts'

const key = (tp: TopicPartition) => `${tp.topic}/${tp.partition}`
const topicCounts = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 1, max: 16 }), { minKeys: 1 })
const ids = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 7 })
/** Members as they come after rebalances: claims may overlap, be stale, or name what no longer exists. */
const membersOf = (names: readonly string[]) =>
  fc.tuple(
    ...names.map((id) =>
      fc.record({
        id: fc.constant(id),
        generation: fc.integer({ min: -1, max: 4 }),
        owned: fc.array(
          fc.record({ topic: fc.constantFrom('a', 'b', 'c', 'gone'), partition: fc.integer({ min: 0, max: 20 }) }),
          { maxLength: 40 },
        ),
      }),
    ),
  )
const world = fc
  .tuple(topicCounts, ids)
  .chain(([counts, names]) => fc.tuple(fc.constant(new Map(Object.entries(counts))), membersOf(names)))

const modes = [
  ['lanes', assignLanes],
  ['partitions', assignPartitions],
] as const

for (const [mode, assign] of modes) {
  describe(`assign ${mode}`, () => {
    test('is complete and disjoint: every partition has exactly one owner', () => {
      fc.assert(
        fc.property(world, ([counts, members]) => {
          const dealt = [...assign(counts, members).values()].flat().map(key).sort()
          const all = [...counts].flatMap(([topic, n]) =>
            [...Array(n).keys()].map((partition) => key({ topic, partition })),
          )
          expect(dealt).toEqual(all.sort())
        }),
      )
    })

    test('is deterministic: the order in which the coordinator lists members does not matter', () => {
      fc.assert(
        fc.property(world, ([counts, members]) => {
          expect(assign(counts, [...members].reverse())).toEqual(assign(counts, members))
        }),
      )
    })
  })
}

const unitsOf = (mode: string, tps: readonly TopicPartition[]) =>
  new Set(mode === 'lanes' ? tps.map((tp) => String(tp.partition)) : tps.map(key))

describe('balance and stickiness', () => {
  for (const [mode, assign] of modes) {
    test(`${mode}: shares differ by at most one`, () => {
      fc.assert(
        fc.property(world, ([counts, members]) => {
          const sizes = [...assign(counts, members).values()].map((mine) => unitsOf(mode, mine).size)
          expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1)
        }),
      )
    })

    test(`${mode}: only what must move moves, over joins and leaves`, () => {
      const change = fc.array(fc.tuple(fc.boolean(), fc.nat()), { minLength: 1, maxLength: 8 })
      fc.assert(
        fc.property(topicCounts, change, (dictionary, steps) => {
          const counts = new Map(Object.entries(dictionary))
          let members: AssignMember[] = [{ id: 'm0', owned: [], generation: -1 }]
          let generation = 0
          const advance = () => {
            const result = assign(counts, members)
            generation++
            members = members.map((m) => ({ id: m.id, owned: result.get(m.id) ?? [], generation }))
            return result
          }
          advance()
          for (const [i, [join, pick]] of steps.entries()) {
            if (join || members.length === 1) members.push({ id: `m${i + 1}`, owned: [], generation: -1 })
            else members.splice(pick % members.length, 1)
            const before = new Map(members.map((m) => [m.id, unitsOf(mode, m.owned)]))
            const after = advance()
            const total = [...after.values()].reduce((n, mine) => n + unitsOf(mode, mine).size, 0)
            const floor = Math.floor(total / members.length)
            // The most that can stay: everyone keeps at most the floor, and `total % members` of them one more.
            const sizes = [...before.values()].map((units) => units.size)
            const most =
              sizes.reduce((n, size) => n + Math.min(size, floor), 0) +
              Math.min(sizes.filter((size) => size > floor).length, total % members.length)
            const stayed = [...after].reduce(
              (n, [id, mine]) => n + [...unitsOf(mode, mine)].filter((unit) => before.get(id)?.has(unit)).length,
              0,
            )
            expect(stayed).toBe(most)
          }
        }),
      )
    })
  }

  test('lanes: partition p of every topic has the same owner', () => {
    fc.assert(
      fc.property(world, ([counts, members]) => {
        const owner = new Map<number, string>()
        for (const [id, mine] of assignLanes(counts, members))
          for (const { partition } of mine)
            expect(owner.get(partition) ?? owner.set(partition, id).get(partition)).toBe(id)
      }),
    )
  })

  test('of two members that claim the same lane, the later generation keeps it', () => {
    const owned = [0, 1].map((partition) => ({ topic: 'a', partition }))
    const result = assignLanes(new Map([['a', 2]]), [
      { id: 'aaa-missed-a-rebalance', owned, generation: 4 },
      { id: 'bbb-current', owned: owned.slice(0, 1), generation: 5 },
    ])
    expect(result.get('bbb-current')).toEqual([{ topic: 'a', partition: 0 }])
    expect(result.get('aaa-missed-a-rebalance')).toEqual([{ topic: 'a', partition: 1 }])
  })
})
