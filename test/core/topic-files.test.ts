import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { problemText } from '../../src/core/result.ts'
import { leastTierRetentionMs, type TopicFile, topicSpecs } from '../../src/core/topic-files.ts'
import { topicUses } from '../../src/core/topic-spec.ts'
import { topicValue } from '../../src/core/topic-value.ts'
import { topicFolder } from '../../src/operations/topic-folder.ts'

const settings = {
  prefix: 'hooks.',
  events: ['orders', 'payments'],
  lanes: 5,
  tiers: [
    { name: 'retry-1s', delayMs: 1000 },
    { name: 'retry-2h', delayMs: 7_200_000 },
  ],
  replication: null,
}

const shipped: readonly TopicFile[] = readdirSync(topicFolder).map((file) => {
  return { file, content: parse(readFileSync(`${topicFolder}/${file}`, 'utf8')) }
})

/** The shipped files with one of them changed; `undefined` removes a field. */
function changed(file: string, change: Record<string, unknown>, config: Record<string, unknown> = {}): TopicFile[] {
  return shipped.map((f) => {
    if (f.file !== file) return f
    const content = f.content as { config: object }
    return { file, content: { ...content, config: { ...content.config, ...config }, ...change } }
  })
}

function problems(files: readonly TopicFile[]): string[] {
  return topicSpecs(files, settings).problems.map(problemText)
}

describe('the shipped files', () => {
  const { specs, problems: found } = topicSpecs(shipped, settings)
  const spec = (name: string) => specs.find((s) => s.name === name)

  test('are without problems and make every topic, tiers and events as often as configured', () => {
    expect(found).toEqual([])
    expect(specs.map(({ name }) => name).sort()).toEqual(
      ['subscriptions', 'secrets', 'control', 'deliveries', 'retry-1s', 'retry-2h', 'parked', 'lane-state', 'dead']
        .concat('attempts', 'rejected')
        .map((name) => `hooks.${name}`)
        .concat('orders', 'payments')
        .sort(),
    )
  })

  test('give every lane topic the same partition count', () => {
    const lanes = Object.entries(topicUses).filter(([, use]) => use.lanes)
    expect(lanes.length).toBeGreaterThan(5)
    for (const [role] of lanes) {
      for (const s of specs.filter((candidate) => candidate.role === role))
        expect([s.name, s.partitions]).toEqual([s.name, 5])
    }
  })

  test.each(settings.tiers)(
    'tier $name ripens by append time and keeps records three delays and three days',
    (tier) => {
      const configs = spec(`hooks.${tier.name}`)?.configs ?? {}
      expect(configs['message.timestamp.type']).toBe('LogAppendTime')
      expect(configs['retention.ms']).toBe(String(leastTierRetentionMs(tier.delayMs)))
      expect(configs['retention.ms']).toBe(String(3 * tier.delayMs + 3 * 86_400_000))
    },
  )

  test('say which partitions may ever change: none that carry keys, and events are not ours', () => {
    const growth = Object.fromEntries(specs.map((s) => [s.role, s.growth]))
    expect(growth).toMatchObject({ '{events}': 'any', rejected: 'grow', deliveries: 'never', subscriptions: 'never' })
  })
})

test.each<[string, TopicFile[], RegExp[]]>([
  ['a missing file', shipped.filter(({ file }) => file !== 'dead.yaml'), [/^dead: has no topic file/]],
  [
    'a topic in two files',
    [...shipped, { file: 'more.yaml', content: shipped.find(({ file }) => file === 'dead.yaml')?.content }],
    [/^more\.yaml: name \("dead"\): is in dead\.yaml already/],
  ],
  [
    'a slip in a name',
    changed('dead.yaml', { name: 'deads' }),
    [/dead\.yaml: name \("deads"\): is no topic.*write "dead"/],
  ],
  [
    'a slip in a field',
    changed('dead.yaml', { partition: 3 }),
    [/dead\.yaml: partition: is no field.*write partitions/],
  ],
  ['no map', [{ file: 'x.yaml', content: ['a'] }], [/^x\.yaml: : is not a map/]],
  ['another key', changed('dead.yaml', { key: 'tenant' }), [/key \("tenant"\): is not what the program writes/]],
  ['a number for a lane topic', changed('dead.yaml', { partitions: 3 }), [/partitions \(3\): is not lanes/]],
  ['lanes for a table', changed('control.yaml', { partitions: 'lanes' }), [/control\.yaml: partitions \("lanes"\)/]],
  ['no partitions at all', changed('control.yaml', { partitions: 0 }), [/write a number from 1 to 1000/]],
  [
    'deletion of a table',
    changed('control.yaml', {}, { 'cleanup.policy': 'delete' }),
    [/would lose the latest record/],
  ],
  [
    'compaction of work',
    changed('deliveries.yaml', {}, { 'cleanup.policy': 'compact' }),
    [/would lose records of one key/],
  ],
  ['a size bound on work', changed('parked.yaml', {}, { 'retention.bytes': '1GiB' }), [/retention\.bytes.*write -1/]],
  [
    'work kept too briefly',
    changed('deliveries.yaml', {}, { 'retention.ms': '1d' }),
    [/retention\.ms.*write 3d or more/],
  ],
  ['a tier kept too briefly', changed('retry.yaml', {}, { 'retention.ms': '3d' }), [/write 3 \* delay \+ 3d or more/]],
  ['a tier by create time', changed('retry.yaml', {}, { 'message.timestamp.type': 'CreateTime' }), [/LogAppendTime/]],
  [
    'a unit that is none',
    changed('dead.yaml', {}, { 'retention.ms': '7days' }),
    [/retention\.ms \("7days"\): can not be read.*7d/],
  ],
  [
    'everything at once',
    changed('dead.yaml', { key: 'x', partitions: 'lanes' }, { 'cleanup.policy': 'compact', 'retention.ms': [] }),
    [/key/, /retention\.ms/, /cleanup\.policy/],
  ],
])('%s is a problem with file, value and remedy', (_name, files, expected) => {
  const found = problems(files)
  expect(found.length).toBe(expected.length)
  for (const [i, pattern] of expected.entries()) expect(found[i]).toMatch(pattern)
})

test.each<[string, unknown, number | null, string | null]>([
  ['retention.ms', '7d', null, '604800000'],
  ['retention.ms', '90s', null, '90000'],
  ['retention.ms', 5, null, '5'],
  ['retention.ms', '-1', null, '-1'],
  ['retention.ms', '3 * delay + 3d', 10_000, '259230000'],
  ['retention.ms', '2*delay', 10_000, '20000'],
  ['retention.ms', '3 * delay + 3d', null, null],
  ['retention.ms', '3 * delay + soon', 10_000, null],
  ['retention.ms', '', null, null],
  ['segment.bytes', '16MiB', null, '16777216'],
  ['segment.bytes', '16MB', null, null],
  ['cleanup.policy', ' compact ', null, 'compact'],
  ['unclean.leader.election.enable', false, null, 'false'],
  ['min.cleanable.dirty.ratio', 0.2, null, '0.2'],
  ['x', null, null, null],
  ['x', Number.NaN, null, null],
])('%s: %j with delay %j reads as %j', (key, written, delayMs, expected) => {
  expect(topicValue(key, written, delayMs)).toBe(expected)
})
