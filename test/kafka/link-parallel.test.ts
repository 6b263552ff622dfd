import { expect, test } from 'vitest'
import { testKafka, testTopic } from '../support/kafka.ts'

test('many first requests at once on fresh connections all succeed: none is sent before the versions are known', async () => {
  const topics = await Promise.all([testTopic(), testTopic({ partitions: 3 }), testTopic()])
  for (let round = 0; round < 10; round++) {
    const kafka = await testKafka()
    const reader = kafka.reader()
    const ends = await Promise.all(
      topics.flatMap((topic, i) =>
        Array.from({ length: 8 }, async (_, n) => {
          // Callers come while the first one's connection is being made, at every stage of it.
          for (let turn = 0; turn < (n + i) * 3; turn++) await new Promise(setImmediate)
          return reader.ends(topic)
        }),
      ),
    )
    expect(ends.map((end) => end.size)).toEqual([1, 3, 1].flatMap((size) => Array(8).fill(size)))
    await kafka.close()
  }
})
