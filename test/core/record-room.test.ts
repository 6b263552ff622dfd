import { expect, test } from 'vitest'
import { roomProblems } from '../../src/core/record-room.ts'
import type { TopicConfig, TopicSpec, TopicState } from '../../src/core/topic-spec.ts'

const spec = (name: string, role = name): TopicSpec => ({
  ...{ name, role, partitions: 1, growth: 'never', replication: null, configs: {} },
})
const state = (value: string | null, source: TopicConfig['source'] = 'topic'): TopicState => ({
  ...{ partitions: 1, replication: 1, configs: new Map([['max.message.bytes', { value, source }]]) },
})

test.each([
  { name: 'room enough', role: 'deliveries', has: '1048588', max: 262_144, says: [] },
  {
    name: 'what is ours takes a batch whole',
    role: 'dead',
    has: '900000',
    max: 262_144,
    says: [/dead: .* 21600 bytes/],
  },
  {
    ...{ name: 'an events topic needs room for one event', role: '{events}', has: '262144', max: 262_144 },
    says: [/is 262144, must be at least 294912 .* 32768 bytes too few/],
  },
  { name: 'not for batches', role: '{events}', has: '300000', max: 262_144, says: [] },
  { name: 'the largest inline bound fits', role: '{tier}', has: '1048588', max: 900 * 1024, says: [] },
  { name: 'a table holds no bodies', role: 'control', has: '1000', max: 262_144, says: [] },
  { name: 'unknown is no problem', role: 'dead', has: null, max: 262_144, says: [] },
] as const)('$name', ({ role, has, max, says }) => {
  const found = roomProblems([spec(role)], new Map([[role, state(has)]]), max)
  expect(found).toEqual(says.map((text) => expect.stringMatching(text)))
})

test('a default of the broker is told as one', () => {
  const found = roomProblems([spec('e', '{events}')], new Map([['e', state('1000', 'broker')]]), 1_000)
  expect(found).toEqual([expect.stringContaining("1000 (the broker's own)")])
})
