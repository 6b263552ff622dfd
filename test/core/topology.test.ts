import { describe, expect, test } from 'vitest'
import type { TopicConfig, TopicSpec, TopicState } from '../../src/core/topic-spec.ts'
import { isDrift, planLines, planTopics } from '../../src/core/topology.ts'

const lane: TopicSpec = {
  name: 't',
  role: 'deliveries',
  partitions: 12,
  growth: 'never',
  replication: null,
  configs: { 'cleanup.policy': 'delete', 'retention.ms': '1000' },
}

function state(change: Partial<TopicState> = {}, configs: Record<string, TopicConfig> = {}): TopicState {
  const base: Record<string, TopicConfig> = {
    'cleanup.policy': { value: 'delete', source: 'default' },
    'retention.ms': { value: '1000', source: 'topic' },
    'min.insync.replicas': { value: '2', source: 'topic' },
    'segment.ms': { value: '5', source: 'default' },
  }
  return { partitions: 12, replication: 3, configs: new Map(Object.entries({ ...base, ...configs })), ...change }
}

function plan(spec: TopicSpec, actual: TopicState | null, brokers = 3) {
  const [only] = planTopics([spec], new Map(actual === null ? [] : [[spec.name, actual]]), brokers)
  return only as NonNullable<typeof only>
}

describe('a missing topic is created with', () => {
  test.each([
    { brokers: 1, wish: null, replication: 1, minInsync: '1' },
    { brokers: 2, wish: null, replication: 2, minInsync: '1' },
    { brokers: 3, wish: null, replication: 3, minInsync: '2' },
    { brokers: 9, wish: null, replication: 3, minInsync: '2' },
    { brokers: 9, wish: 5, replication: 5, minInsync: '4' },
  ])(
    '$brokers brokers, replication $wish: $replication copies, $minInsync in sync',
    ({ brokers, wish, ...expected }) => {
      const p = plan({ ...lane, replication: wish }, null, brokers)
      expect(p).toMatchObject({ action: 'create', partitions: 12, replication: expected.replication })
      expect(p.changes).toContainEqual({ setting: 'min.insync.replicas', actual: null, wanted: expected.minInsync })
      expect(p.changes).toContainEqual({ setting: 'retention.ms', actual: null, wanted: '1000' })
      expect(isDrift(p)).toBe(true)
    },
  )
})

describe('an existing topic', () => {
  test('as it should be is ok, whether by override or by default', () => {
    expect(plan(lane, state())).toMatchObject({ action: 'ok', changes: [], refused: [], kept: {} })
    expect(planLines(plan(lane, state()))).toEqual([])
  })

  test.each([
    [
      'another value',
      { 'retention.ms': { value: '1', source: 'topic' } as const },
      ['t: retention.ms is 1, must be 1000'],
    ],
    [
      'a broker default that differs',
      { 'retention.ms': { value: '7', source: 'broker' } as const },
      ['t: retention.ms is 7, must be 1000'],
    ],
    [
      'a policy with an addition',
      { 'cleanup.policy': { value: 'compact,delete', source: 'topic' } as const },
      ['t: cleanup.policy is compact,delete, must be delete'],
    ],
    [
      'fewer copies in sync',
      { 'min.insync.replicas': { value: '1', source: 'topic' } as const },
      ['t: min.insync.replicas is 1, must be 2'],
    ],
  ])('with %s is altered', (_name, configs, lines) => {
    const p = plan(lane, state({}, configs))
    expect(p.action).toBe('alter')
    expect(planLines(p)).toEqual(lines)
    expect(isDrift(p)).toBe(true)
  })

  test('whose broker does not know a setting says so', () => {
    const p = plan({ ...lane, configs: { ...lane.configs, 'new.setting': '1' } }, state())
    expect(p.changes).toEqual([{ setting: 'new.setting', actual: null, wanted: '1' }])
  })

  test('lists in another order are equal', () => {
    const spec = { ...lane, configs: { 'cleanup.policy': 'compact,delete' } }
    expect(plan(spec, state({}, { 'cleanup.policy': { value: 'delete,compact', source: 'topic' } })).changes).toEqual(
      [],
    )
  })

  test('keeps overrides that are none of ours', () => {
    const p = plan(
      lane,
      state({}, { 'segment.ms': { value: '5', source: 'topic' }, 'x.secret': { value: null, source: 'topic' } }),
    )
    expect(p).toMatchObject({ action: 'ok', kept: { 'segment.ms': '5', 'x.secret': '***' } })
  })

  test.each([
    ['lane topics shrink', lane, 13, 'refused', /take partitions away/],
    ['lane topics grow', lane, 6, 'refused', /new generation/],
    ['topics without keys shrink', { ...lane, growth: 'grow' as const }, 13, 'refused', /take partitions away/],
    ['topics without keys grow', { ...lane, growth: 'grow' as const }, 6, 'alter', /partitions is 6, must be 12$/],
  ])('partitions: %s', (_name, spec, partitions, action, line) => {
    const p = plan(spec, state({ partitions }))
    expect(p.action).toBe(action)
    expect(planLines(p)).toHaveLength(1)
    expect(planLines(p)[0]).toMatch(line)
    expect(isDrift(p)).toBe(true)
  })

  test('with fewer copies is reported but may be used; min.insync.replicas follows the copies it has', () => {
    const p = plan(lane, state({ replication: 1 }, { 'min.insync.replicas': { value: '1', source: 'default' } }))
    expect(p).toMatchObject({ action: 'refused', changes: [] })
    expect(planLines(p)[0]).toMatch(/replication is 1, must be 3; can not be changed: .*reassign/)
    expect(isDrift(p)).toBe(false)
  })

  test('does not drift because brokers are down', () => {
    expect(plan(lane, state(), 2).action).toBe('ok')
  })

  test('of events is not ours: nothing about it is drift', () => {
    const foreign = state({ partitions: 3, replication: 1 }, { 'retention.ms': { value: '1', source: 'topic' } })
    expect(plan({ ...lane, growth: 'any' }, foreign)).toMatchObject({ action: 'ok', partitions: 3 })
  })
})
