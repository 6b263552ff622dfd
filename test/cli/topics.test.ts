import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { topicsCommand } from '../../src/cli/topics.ts'
import type { HooktideError } from '../../src/core/error.ts'
import type { TopicSpec } from '../../src/core/topic-spec.ts'
import { planLines } from '../../src/core/topology.ts'
import { KafkaTopicAdmin } from '../../src/kafka/admin.ts'
import { KafkaClient } from '../../src/kafka/client.ts'
import { applyPlan, readPlan, verifyTopics } from '../../src/operations/topic-actions.ts'
import { readTopicSpecs } from '../../src/operations/topic-folder.ts'
import { testBroker } from '../support/broker.ts'
import { realClock } from '../support/clock.ts'

const prefix = `topics-test-${process.pid}-${Date.now()}.`
const settings = {
  prefix,
  events: [`${prefix}events`],
  lanes: 2,
  tiers: [
    { name: 'retry-1s', delayMs: 1000 },
    { name: 'retry-4s', delayMs: 4000 },
  ],
  replication: null,
}

let specs: readonly TopicSpec[]
let client: KafkaClient
let admin: KafkaTopicAdmin

beforeAll(async () => {
  const { brokers } = await testBroker()
  const observer = { log: () => undefined, count: () => undefined, time: () => undefined }
  client = new KafkaClient({ brokers: brokers.split(','), clientId: 'topics-test' }, { clock: realClock, observer })
  admin = new KafkaTopicAdmin(client)
  specs = await readTopicSpecs(settings)
})
afterAll(() => admin.close())

async function topics(...args: string[]) {
  const printed: string[] = []
  let code: number | null = null
  const command = topicsCommand({
    open: async () => ({ specs, maxEventBytes: 262_144, admin: new KafkaTopicAdmin(client) }),
    print: (text) => printed.push(text),
    exit: (value) => {
      code = value
    },
  })
  await command.parseAsync(args, { from: 'user' })
  return { code, text: printed.join('\n') }
}

describe('topics on a real broker', () => {
  test('missing topics: plan says so and changes nothing, verify refuses the start with the remedy', async () => {
    const plan = await topics('plan')
    expect(plan.code).toBe(1)
    expect(plan.text).toContain(`${specs.length} create`)
    expect(plan.text).toContain('message.timestamp.type = LogAppendTime')
    const error = (await verifyTopics(admin, specs).catch((e: unknown) => e)) as HooktideError
    expect(error).toMatchObject({
      code: 'topic.missing',
      message: `${specs.length} of ${specs.length} topics are missing`,
      remedy: 'Run `hooktide topics apply`.',
    })
    expect(error.details).toContain(`${prefix}deliveries: missing; create with 2 partitions, 1 copies`)
    expect((await admin.describe([`${prefix}deliveries`])).size).toBe(0)
  })

  test('apply creates them as specified, and a second apply has nothing to do', async () => {
    const first = await topics('apply')
    expect(first.code).toBe(0)
    expect(first.text.split('\n').filter((line) => line.endsWith(': created'))).toHaveLength(specs.length)
    const states = await admin.describe(specs.map(({ name }) => name))
    for (const spec of specs) {
      expect(states.get(spec.name)).toMatchObject({ partitions: spec.partitions, replication: 1 })
      for (const [key, value] of Object.entries(spec.configs)) {
        expect([spec.name, key, states.get(spec.name)?.configs.get(key)]).toEqual([
          spec.name,
          key,
          { value, source: 'topic' },
        ])
      }
    }
    expect(await topics('apply')).toEqual({ code: 0, text: 'Nothing to do.' })
    expect((await topics('verify')).code).toBe(0)
    expect(await verifyTopics(admin, specs)).toEqual([])
  })

  test('a changed setting is drift; apply puts it back and leaves the override of somebody else', async () => {
    const topic = `${prefix}retry-4s`
    await admin.alterConfigs(topic, { 'retention.ms': '1000', 'segment.bytes': '33554432' })
    const error = (await verifyTopics(admin, specs).catch((e: unknown) => e)) as HooktideError
    expect(error).toMatchObject({ code: 'topic.drift', message: `1 of ${specs.length} topics are not as they must be` })
    expect(error.details).toEqual([`${topic}: retention.ms is 1000, must be 259212000`])
    const verify = await topics('verify')
    expect(verify.code).toBe(1)
    expect(verify.text).toContain('segment.bytes = 33554432 is none of ours and stays')
    const applied = await topics('apply')
    expect(applied).toEqual({ code: 0, text: `${topic}: retention.ms 1000 → 259212000` })
    const { configs } = (await admin.describe([topic])).get(topic) as { configs: ReadonlyMap<string, unknown> }
    expect(configs.get('segment.bytes')).toEqual({ value: '33554432', source: 'topic' })
    expect(configs.get('message.timestamp.type')).toEqual({ value: 'LogAppendTime', source: 'topic' })
  })

  test('a wrong partition count of a lane topic is refused, the rest is still applied', async () => {
    const topic = `${prefix}attempts`
    await admin.grow(topic, 3)
    await admin.alterConfigs(`${prefix}dead`, { 'retention.ms': '1000' })
    const applied = await topics('apply')
    expect(applied.code).toBe(1)
    expect(applied.text).toContain(`${prefix}dead: retention.ms 1000 → 7776000000`)
    expect(applied.text).toContain('partitions is 3, must be 2; can not be changed: Kafka can not take partitions away')
    await expect(verifyTopics(admin, specs)).rejects.toMatchObject({ code: 'topic.drift' })
    const wider = await readTopicSpecs({ ...settings, lanes: 3 })
    const plan = await readPlan(admin, wider)
    expect(plan.flatMap(planLines)).toContainEqual(
      expect.stringMatching(/deliveries: partitions is 2, must be 3; .* new generation/),
    )
  })

  test('a topic without keys grows', async () => {
    const topic = `${prefix}rejected`
    const more = specs.filter(({ name }) => name === topic).map((spec) => ({ ...spec, partitions: 5 }))
    await applyPlan(admin, await readPlan(admin, more), () => undefined)
    expect((await admin.describe([topic])).get(topic)?.partitions).toBe(5)
  })

  test('events may exist with other partitions and settings, which stay', async () => {
    const topic = `${prefix}events-of-others`
    await admin.create([{ topic, partitions: 1, replication: 1, configs: { 'retention.ms': '5000' } }])
    const foreign = (await readTopicSpecs({ ...settings, events: [topic] })).filter(({ name }) => name === topic)
    await applyPlan(admin, await readPlan(admin, foreign), () => undefined)
    expect(await verifyTopics(admin, foreign)).toEqual([])
    const state = (await admin.describe([topic])).get(topic)
    expect(state?.partitions).toBe(1)
    expect(state?.configs.get('retention.ms')?.value).toBe('5000')
  })

  test('a setting the broker will not take is refused in its own words, and creating what exists is no error', async () => {
    const topic = `${prefix}dead`
    await expect(admin.alterConfigs(topic, { 'retention.ms': 'soon' })).rejects.toMatchObject({
      code: 'config.invalid',
      message: expect.stringMatching(/retention\.ms.*soon|soon.*retention\.ms/),
    })
    await admin.create([{ topic, partitions: 9, replication: 1, configs: {} }])
    expect((await admin.describe([topic])).get(topic)?.partitions).toBe(2)
    await expect(
      admin.create([{ topic: `${prefix}wide`, partitions: 1, replication: 9, configs: {} }]),
    ).rejects.toMatchObject({ code: 'config.invalid' })
  })

  test('--json prints the whole plan', async () => {
    const { topics: plans } = JSON.parse((await topics('plan', '--json')).text) as {
      topics: { topic: string; action: string }[]
    }
    expect(plans).toHaveLength(specs.length)
    expect(plans.find(({ topic }) => topic === `${prefix}deliveries`)).toMatchObject({ action: 'ok', changes: [] })
  })

  test('the cluster and its groups can be seen', async () => {
    const cluster = await admin.cluster()
    expect(cluster.brokers.length).toBeGreaterThan(0)
    const consumer = client.kafka('consumer').consumer({ groupId: `${prefix}group` })
    await consumer.connect()
    await consumer.subscribe({ topic: `${prefix}dead`, fromBeginning: true })
    const joined = new Promise<void>((resolve) => {
      consumer.on('consumer.group_join', () => resolve())
    })
    await consumer.run({ eachMessage: async () => undefined })
    await joined
    const groups = await admin.groups(prefix)
    expect(groups).toMatchObject([{ group: `${prefix}group`, state: 'Stable', members: [{ clientId: 'topics-test' }] }])
    expect(groups[0]?.members[0]?.partitions).toHaveLength(2)
    await consumer.disconnect()
  })
})
