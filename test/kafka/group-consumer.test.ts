import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testBroker } from '../support/broker.ts'
import { Member, newGroup, realClock, stock, until } from './group-support.ts'

let brokers: string
let tools: Awaited<ReturnType<typeof stock>>
beforeAll(async () => {
  ;({ brokers } = await testBroker())
  tools = await stock(brokers)
})
afterAll(() => tools.close())

describe('reading', () => {
  test('what is written arrives in order, with the next offset', async () => {
    const topic = await tools.topic(2)
    await tools.send(topic, 0, 'a', 'b')
    const member = await new Member(brokers, { group: newGroup(), topics: [topic] }).start()
    await until('two records', () => member.values.length === 2)
    await tools.send(topic, 1, 'c')
    await until('third record', () => member.values.length === 3)
    expect(member.values).toEqual(['a', 'b', 'c'])
    expect(member.batches.at(-1)).toMatchObject({ topic, partition: 1, nextOffset: 1, highWatermark: 1 })
    expect(member.consumer.leaseAgeMs()).toBeLessThan(5000)
  })
})
