import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { InRecord } from '../../src/core/record.ts'
import { attemptFact, type Fact, placeFact, type StatePlace } from '../../src/core/state-fact.ts'
import { currentSending, type DeliveryRow, foldFact } from '../../src/core/state-row.ts'
import { decodeAttempt } from '../../src/schema/decode.ts'
import { MemoryLog, play, stories, topics } from '../state/histories.ts'

/** Facts of a log by delivery, in the order of each partition but partition after partition. */
function factsOf(log: MemoryLog): Fact[][] {
  const byDelivery = new Map<string, Fact[]>()
  const places: readonly (readonly [StatePlace | 'attempts', string])[] = [
    ['dead', topics.dead],
    ['attempts', topics.attempts],
    ['tier', topics.tiers[0]],
    ['parked', topics.parked],
    ['tier', topics.tiers[1]],
    ['deliveries', topics.deliveries],
  ]
  for (const [kind, topic] of places) {
    for (let partition = 0; partition < log.lanes; partition++) {
      for (const record of log.records(topic, partition)) {
        const fact = factOf(kind, { topic, partition }, record)
        byDelivery.set(fact.id, [...(byDelivery.get(fact.id) ?? []), fact])
      }
    }
  }
  return [...byDelivery.values()]
}

function factOf(kind: StatePlace | 'attempts', at: { topic: string; partition: number }, record: InRecord): Fact {
  if (kind !== 'attempts') {
    const decoded = placeFact(kind, at, record)
    if (!decoded.ok) throw new Error(decoded.reason)
    return decoded.value
  }
  const decoded = decodeAttempt(record)
  if (!decoded.ok) throw new Error(decoded.reason)
  return attemptFact(at, record, decoded.value) as Fact
}

function fold(facts: readonly Fact[]): DeliveryRow {
  return facts.reduce<DeliveryRow | null>((row, fact) => foldFact(row, fact), null) as DeliveryRow
}

test('the row of a delivery does not depend on the order in which its records are read, nor on how often', () => {
  fc.assert(
    fc.property(stories, fc.infiniteStream(fc.nat()), (all, chance) => {
      const log = new MemoryLog(3)
      play(log, all)
      for (const facts of factsOf(log)) {
        const shuffled = [...facts, ...facts].sort(() => ((chance.next().value as number) % 2 === 0 ? -1 : 1))
        expect(fold(shuffled)).toEqual(fold(facts))
      }
    }),
    { numRuns: 200 },
  )
})

test('the row says what the last step of the last sending was', () => {
  fc.assert(
    fc.property(stories, (all) => {
      const log = new MemoryLog(3)
      play(log, all)
      const rows = new Map(factsOf(log).map((facts) => [facts[0]?.id, fold(facts)]))
      for (const { number, sendings } of all) {
        // While an earlier sending is not at its end it counts, or its end would be the delivery's.
        const open = sendings.filter((steps) => steps.at(-1)?.t !== 'end')
        if (open.length > 0 && (open.length > 1 || sendings.at(-1)?.at(-1)?.t === 'end')) continue
        const last = sendings.at(-1)?.at(-1)
        const row = rows.get(`msg_d${number}`) as DeliveryRow
        expect(row.sendings).toHaveLength(sendings.length)
        const expected =
          last === undefined
            ? 'queued'
            : last.t === 'end'
              ? { done: 'delivered', dead: 'dead', cancelled: 'cancelled' }[last.how]
              : last.t === 'park' || last.park
                ? 'parked'
                : 'scheduled'
        const parkedFirst = last?.t === 'attempt' && !last.park
        expect(parkedFirst ? 'scheduled' : expected).toBe(currentSending(row).status)
        expect(currentSending(row).posts).toBe(
          (sendings.at(-1) ?? []).filter(({ t }) => t === 'attempt').length +
            (last?.t === 'end' && last.how !== 'cancelled' ? 1 : 0),
        )
      }
    }),
    { numRuns: 200 },
  )
})
