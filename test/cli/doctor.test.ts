import { beforeAll, describe, expect, test } from 'vitest'
import { checkGroups } from '../../src/cli/doctor-checks.ts'
import type { Finding } from '../../src/cli/doctor-finding.ts'
import { loadConfig } from '../../src/config.ts'
import type { Cluster } from '../../src/operations/cluster.ts'
import { realClock } from '../support/clock.ts'
import { clusterOf, hooktide, ownWorld } from './support.ts'

let env: Record<string, string>
beforeAll(async () => {
  env = await ownWorld()
})

async function doctor(more: Record<string, string> = {}, deps = {}) {
  const { code, out } = await hooktide(['doctor', '--json'], { env: { ...env, ...more }, ...deps })
  const { ok, findings } = JSON.parse(out) as { ok: boolean; findings: Finding[] }
  const of = (check: string, state: string) => findings.filter((f) => f.check === check && f.state === state)
  return { code, ok, of, findings }
}

describe('doctor on a real broker', () => {
  test('all in order but for what a single broker without a service can not be: exit 0', async () => {
    const { code, ok, findings } = await doctor()
    expect(findings.filter(({ state }) => state === 'fail')).toEqual([])
    expect({ code, ok }).toEqual({ code: 0, ok: true })
    const checks = [
      'configuration',
      'tiers',
      'broker',
      'topics',
      'sizes',
      'clock',
      'subscriptions',
      'control',
      'secrets',
      'service',
      'retention',
    ]
    expect([...new Set(findings.map(({ check }) => check))]).toEqual(checks)
    const clock = findings.find(({ check }) => check === 'clock')
    expect(clock).toMatchObject({ state: 'ok', message: expect.stringMatching(/^the broker's clock is \d+ ms/) })
  })

  test('a clock that is off fails, with how far and which way', async () => {
    const clock = { ...realClock, now: () => realClock.now() - 90_000 }
    const { code, of } = await doctor({}, { clock })
    expect(code).toBe(1)
    expect(of('clock', 'fail')[0]?.message).toMatch(/^the broker's clock is (89|90)\d{3} ms ahead of ours$/)
  })

  test('a secret that can not be resolved, a forbidden URL and an unreadable record fail, each with its subscription', async () => {
    const add = (id: string, url: string, more: Record<string, string> = {}) =>
      hooktide(['subscriptions', 'add', '--id', id, '--url', url, '--secret', 'env:NOWHERE'], {
        env: { ...env, ...more },
      })
    await add('private', 'http://10.0.0.1/x', {
      HOOKTIDE_HTTP_ALLOW_HTTP: 'true',
      HOOKTIDE_HTTP_ALLOW_PRIVATE: '10.0.0.0/8',
    })
    const cluster = clusterOf(env)
    const topic = `${env.HOOKTIDE_TOPICS_PREFIX}subscriptions`
    await cluster.kafka.producer().send([{ topic, partition: 0, key: 'broken', value: Buffer.from('{'), headers: {} }])
    await cluster.close()

    const { code, ok, of } = await doctor()
    expect({ code, ok }).toEqual({ code: 1, ok: false })
    expect(of('secrets', 'fail')[0]?.message).toBe(
      'private: environment variable NOWHERE is not set or empty; set it or correct the reference',
    )
    const messages = of('subscriptions', 'fail').map(({ message }) => message)
    expect(messages).toEqual([
      expect.stringMatching(/^1 subscription can not be read, e\.g\. broken: /),
      expect.stringMatching(/^private: plain http is not allowed/),
    ])
  })

  test('records nobody here can read: of orders and subscriptions, newer and damaged apart, how many and one to look at', async () => {
    const own = await ownWorld()
    const cluster = clusterOf(own)
    const producer = cluster.kafka.producer()
    const put = (name: string, key: string, value: string) =>
      producer.send([
        { topic: `${own.HOOKTIDE_TOPICS_PREFIX}${name}`, partition: 0, key, value: Buffer.from(value), headers: {} },
      ])
    await put('control', 'tier:retry-10s', '{"v":99,"kind":"tier"}')
    await put('control', 'tier:retry-1m', '{"v":99,"kind":"tier"}')
    await put('control', 'delivery:x', '[]')
    await put('subscriptions', 'later', '{"v":99}')
    await producer.close()
    await cluster.close()
    const { of } = await doctor(own)
    expect(of('control', 'fail')).toMatchObject([
      { message: expect.stringMatching(/^2 control records are of a newer version, e\.g\. tier:retry-10s: /) },
      { message: expect.stringMatching(/^1 control record can not be read, e\.g\. delivery:x: /) },
    ])
    expect(of('subscriptions', 'fail')).toMatchObject([
      { message: expect.stringMatching(/^1 subscription is of a newer version, e\.g\. later: /) },
    ])
  })

  test('an event that goes inline must fit into every topic on its way: doctor and `topics verify` say which does not', async () => {
    const own = await ownWorld()
    const all = (more: object) => hooktide(['topics', 'verify', '--json'], { env: { ...own, ...more } })
    expect((await doctor(own)).of('sizes', 'ok')[0]?.message).toMatch(
      /^events of up to 262144 bytes fit .* are rejected$/,
    )
    const stored = await doctor({ ...own, HOOKTIDE_OBJECTS_DIRECTORY: '/objects' })
    expect(stored.of('sizes', 'ok')[0]?.message).toMatch(/bodies of up to \d+ bytes are stored apart$/)
    expect(JSON.parse((await all({})).out).noRoom).toEqual([])
    const cluster = clusterOf(own)
    const topic = `${own.HOOKTIDE_TOPICS_EVENTS}`
    await cluster.admin.alterConfigs(topic, { 'max.message.bytes': '262144' })
    await cluster.close()
    const said = `${topic}: max.message.bytes is 262144, must be at least 294912`
    const { code, of } = await doctor(own)
    expect([code, of('sizes', 'fail').map(({ message }) => message)]).toEqual([1, [expect.stringContaining(said)]])
    const verify = await all({})
    expect([verify.code, JSON.parse(verify.out).noRoom]).toEqual([1, [expect.stringContaining(said)]])
    const text = await hooktide(['topics', 'verify'], { env: own })
    expect(text).toMatchObject({ code: 1, out: expect.stringContaining(`no room: ${said}`) })
  })

  test('missing topics: each is named, and nothing is asked that needs them', async () => {
    const { code, of, findings } = await doctor({ HOOKTIDE_TOPICS_PREFIX: 'nowhere.' })
    expect(code).toBe(1)
    expect(of('topics', 'fail')[0]).toMatchObject({
      message: expect.stringContaining('nowhere.'),
      remedy: 'Run `hooktide topics apply`.',
    })
    expect(findings.at(-1)?.check).toBe('topics')
  })

  test('text: state, check, message, and the remedy below', async () => {
    const { out } = await hooktide(['doctor'], { env })
    expect(out).toMatch(/^ok {4}broker {9}cluster /m)
    expect(out).toMatch(/^warn {2}service {8}no router is running .*\n {21}Start one: hooktide up --roles router$/m)
    expect(out).toMatch(/\n\d+ ok, \d+ warnings?, \d+ failed\n$/)
  })
})

test('a configuration with problems is all there is to say', async () => {
  const { code, findings } = await doctor({ HOOKTIDE_TOPICS_LANES: '0', HOOKTIDE_RETRY_BASE: 'soon' })
  expect(code).toBe(1)
  expect(findings.map(({ check, state }) => [check, state])).toEqual([
    ['configuration', 'fail'],
    ['configuration', 'fail'],
  ])
})

test('more deliverers than lanes: doctor says how many are idle, but not while a rebalance is under way', async () => {
  const { config } = loadConfig({ env: { HOOKTIDE_TOPICS_LANES: '2' } })
  const member = (id: string, lanes: number[]) => ({
    ...{ id, clientId: id, host: 'h' },
    partitions: lanes.map((partition) => ({ topic: 'webhooks.deliveries', partition })),
  })
  const found = async (state: string) => {
    const members = [member('a', [0]), member('b', [1]), member('c', [])]
    const groups = async () => [{ group: 'hooktide.deliverer', state, members }]
    return (await checkGroups({ admin: { groups } } as unknown as Cluster, config))[1]
  }
  expect(await found('Stable')).toMatchObject({
    state: 'warn',
    message: 'deliverer: 1 of 3 members are idle: there are not more lanes (2)',
  })
  expect(await found('PreparingRebalance')).toMatchObject({ state: 'ok' })
})
