import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { OwnBroker } from '../../src/broker/options.ts'
import type { TopicSpec } from '../../src/core/topic-spec.ts'
import type { KafkaOptions } from '../../src/kafka/client.ts'
import { applyPlan, readPlan, verifyTopics } from '../../src/operations/topic-actions.ts'
import { readTopicSpecs } from '../../src/operations/topic-folder.ts'
import { ownBroker, whyNoLocalBroker } from '../support/broker.ts'
import { type Authority, createAuthority } from '../support/certificates.ts'
import { clientsOf, grant, secureListeners } from './cluster.ts'
import { envOf, runCommands, runThroughApi } from './commands.ts'
import { type Acl, aclText, leastAcls, type Role, topicsOf, uses } from './roles.ts'

const names = { prefix: 'acl.', events: 'orders', tiers: ['retry-1s'], groupPrefix: 'hooktide.' }
const settings = {
  prefix: names.prefix,
  events: [names.events],
  lanes: 1,
  tiers: [{ name: 'retry-1s', delayMs: 1000 }],
  replication: null,
}
const roles = ['router', 'deliverer', 'projector', 'api', 'cli', 'admin'] as const

/** One user with all a role needs, and one for each ACL, who lacks it. */
const users = roles.flatMap((role) => {
  const acls = leastAcls(role, names)
  const lacking = acls.map((missing, i) => {
    return { user: `${role}-${i}`, role, missing, acls: acls.filter((acl) => acl !== missing) }
  })
  return [{ user: role, role, missing: null, acls }, ...lacking]
})

const noJava = (await whyNoLocalBroker()) !== null

let broker: OwnBroker
let authority: Authority
let strangers: Authority
let specs: readonly TopicSpec[]
let clientCertificate: { certificate: string; key: string }

beforeAll(async () => {
  if (noJava) return
  authority = await createAuthority('Hooktide test CA')
  strangers = await createAuthority('Another CA')
  clientCertificate = await authority.issue('hooktide')
  broker = await ownBroker({
    security: {
      listeners: secureListeners,
      scram: [
        { mechanism: 'SCRAM-SHA-256', user: 'ann', password: 'ann-256' },
        { mechanism: 'SCRAM-SHA-512', user: 'ann', password: 'ann-512' },
      ],
      plain: [...users, { user: 'ben' }].map(({ user }) => ({ user, password: `${user}-plain` })),
      tls: { ca: authority.ca, ...(await authority.issue('broker')) },
      authorizer: true,
    },
  })
  specs = await readTopicSpecs(settings)
  const { admin, close } = clientsOf({ brokers: [broker.brokers] })
  await applyPlan(admin, await readPlan(admin, specs), () => undefined)
  await close()
  const describing: Acl = { resource: 'topic', name: names.events, prefixed: false, operation: 'DESCRIBE' }
  const logins = ['ann', 'ben', 'CN=hooktide'].map((user) => ({ user, acls: [describing] }))
  await grant(broker.brokers, [...users, ...logins])
}, 120_000)
afterAll(() => broker?.stop())

function secure(sasl?: NonNullable<KafkaOptions['sasl']>, ca = authority.ca) {
  return { brokers: [broker.secure.SECURE as string], ssl: { ca }, sasl }
}

async function connect(options: Pick<KafkaOptions, 'brokers' | 'ssl' | 'sasl'>): Promise<unknown> {
  const { kafka, close } = clientsOf(options)
  try {
    return await kafka.partitions([names.events])
  } catch (error) {
    return error
  } finally {
    await close()
  }
}

describe.skipIf(noJava)('logging in', () => {
  test.each([
    ['scram-sha-512', 'ann', 'ann-512'],
    ['scram-sha-256', 'ann', 'ann-256'],
    ['plain', 'ben', 'ben-plain'],
  ] as const)('by %s over TLS with a CA of our own', async (mechanism, username, password) => {
    expect(await connect(secure({ mechanism, username, password }))).toEqual(new Map([[names.events, 12]]))
    const wrong = await connect(secure({ mechanism, username, password: 'wrong' }))
    expect(wrong).toMatchObject({
      code: 'broker.unauthenticated',
      message: expect.stringContaining('refused the login'),
      remedy: expect.stringContaining('kafka.sasl'),
    })
    expect(String(wrong)).not.toContain(password)
  })

  test('to a broker whose certificate is of another CA is refused by us', async () => {
    const sasl = { mechanism: 'plain', username: 'ben', password: 'ben-plain' } as const
    expect(await connect(secure(sasl, strangers.ca))).toMatchObject({
      code: 'broker.unauthenticated',
      message: expect.stringContaining('TLS with the broker failed'),
      remedy: expect.stringContaining('CA that signed the broker certificate'),
    })
  })

  test('by a client certificate; without one, or with one of another CA, the broker refuses', async () => {
    const mutual = (ssl: NonNullable<KafkaOptions['ssl']>) => ({ brokers: [broker.secure.MUTUAL as string], ssl })
    const { certificate: cert, key } = clientCertificate
    expect(await connect(mutual({ ca: authority.ca, cert, key }))).toEqual(new Map([[names.events, 12]]))
    const refused = { code: 'broker.unauthenticated', remedy: expect.stringContaining('our own certificate and key') }
    expect(await connect(mutual({ ca: authority.ca }))).toMatchObject(refused)
    const foreign = await strangers.issue('hooktide')
    expect(await connect(mutual({ ca: authority.ca, cert: foreign.certificate, key: foreign.key }))).toMatchObject(
      refused,
    )
  })
})

/** All that a role does to Kafka, each once; rejects with the first refusal. */
const work: Record<Role, (user: string, clients: ReturnType<typeof clientsOf>) => Promise<void>> = {
  async router(user, { kafka, admin }) {
    await verifyTopics(admin, specs)
    await read(kafka, topicsOf(uses.router.reads, specs))
    await joinGroup(kafka, `hooktide.${user}`, [names.events], 'partitions')
    await write(kafka, topicsOf(uses.router.writes, specs))
  },
  async deliverer(user, { kafka, admin }) {
    await verifyTopics(admin, specs)
    await read(kafka, topicsOf(uses.deliverer.reads, specs))
    const group = `hooktide.${user}`
    await joinGroup(kafka, group, topicsOf(['deliveries', '{tier}', 'parked'], specs), 'lanes')
    const at = { topic: `${names.prefix}deliveries`, partition: 0 }
    await kafka.offsets.committed(group, [at])
    const producer = kafka.transactional(`hooktide.${user}.lane.0`)
    await producer.fence()
    const records = topicsOf(uses.deliverer.writes, specs).map(recordOf)
    await producer.transact({ records, group, offsets: [{ ...at, offset: 0, metadata: 'm' }] })
    // Until the markers are written OffsetFetch shows the old offset; fencing waits for them.
    await producer.fence()
    const [committed] = await kafka.offsets.committed(group, [at])
    expect(committed).toMatchObject({ offset: 0, metadata: 'm' })
  },
  async projector(_user, { kafka, admin }) {
    await verifyTopics(admin, specs)
    const topics = topicsOf(uses.projector.reads, specs)
    await read(kafka, topics)
    const reader = kafka.reader()
    for (const topic of topics) await reader.starts(topic)
  },
  api: operating,
  cli: operating,
  async admin(user, { admin }) {
    const own = { ...settings, prefix: `${names.prefix}${user}.`, events: [`${names.events}-${user}`] }
    const mine = (await readTopicSpecs(own)).filter(({ role }) => role === 'rejected' || role === '{events}')
    await applyPlan(admin, await readPlan(admin, mine), () => undefined)
    const changed = mine.map((spec) => {
      return { ...spec, partitions: spec.partitions + 1, configs: { ...spec.configs, 'retention.ms': '77' } }
    })
    await applyPlan(admin, await readPlan(admin, changed), () => undefined)
    expect(await verifyTopics(admin, changed)).toEqual([])
  },
}

async function operating(_user: string, { kafka, admin }: ReturnType<typeof clientsOf>): Promise<void> {
  await verifyTopics(admin, specs)
  await read(kafka, topicsOf(uses.cli.reads, specs))
  await write(kafka, topicsOf(uses.cli.writes, specs))
}

type Kafka = ReturnType<typeof clientsOf>['kafka']

const recordOf = (topic: string) => ({ topic, partition: 0, key: 'k', value: Buffer.from('v'), headers: {} })

async function read(kafka: Kafka, topics: readonly string[]): Promise<void> {
  const reader = kafka.reader()
  for (const topic of topics) {
    await reader.ends(topic)
    await reader.fetch({ topic, partition: 0, from: 0 })
  }
}

async function write(kafka: Kafka, topics: readonly string[]): Promise<void> {
  const producer = kafka.producer()
  for (const topic of topics) await producer.send([recordOf(topic)])
}

async function joinGroup(
  kafka: Kafka,
  group: string,
  topics: readonly string[],
  assign: 'lanes' | 'partitions',
): Promise<void> {
  const consumer = kafka.consumer({ group, topics, assign, drainMs: 100 })
  try {
    await consumer.start({
      onRevoking: async () => undefined,
      onAssigned: () => undefined,
      onBatch: () => undefined,
      onUndecodable: () => undefined,
      onFatal: () => undefined,
    })
    if (assign === 'partitions') {
      await consumer.commit(topics.map((topic) => ({ topic, partition: 0, offset: 0, metadata: '' })))
    }
  } finally {
    await consumer.stop()
  }
}

async function attempt(user: string, role: Role): Promise<unknown> {
  const clients = clientsOf(secure({ mechanism: 'plain', username: user, password: `${user}-plain` }))
  try {
    await work[role](user, clients)
    return 'done'
  } catch (error) {
    return error
  } finally {
    await clients.close()
  }
}

/** Without a DESCRIBE of its own the first thing that fails is the one that the missing operation includes. */
const included: Partial<Record<Acl['operation'], Acl['operation']>> = {
  READ: 'DESCRIBE',
  WRITE: 'DESCRIBE',
  ALTER: 'DESCRIBE',
  ALTER_CONFIGS: 'DESCRIBE_CONFIGS',
}

function covers(acl: Acl, other: Acl): boolean {
  if (acl.resource !== other.resource) return false
  return acl.prefixed ? other.name.startsWith(acl.name) : acl.name === other.name
}

/** The groups of others are left out of a list silently: there is nobody to refuse. */
const silent = (acl: Acl) => acl.resource === 'group' && acl.operation === 'DESCRIBE'

describe.skipIf(noJava).each(roles)('the least ACLs of %s', (role) => {
  test('suffice for all it does', async () => {
    expect(await attempt(role, role)).toBe('done')
  })

  const lacking = users.filter((u) => u.role === role && u.missing !== null && !silent(u.missing))
  test.each(lacking.map((u) => ({ ...u, acl: aclText(u.missing as Acl) })))('without $acl it is told so', async (u) => {
    const missing = u.missing as Acl
    const error = await attempt(u.user, role)
    expect(error).toMatchObject({ code: 'broker.unauthorized' })
    const words = missing.resource === 'transactional-id' ? 'transactional id' : missing.resource
    const name = missing.name.replace('.', '\\.') + (missing.prefixed ? '' : '\\b')
    const operation = u.acls.some((acl) => acl.operation === 'DESCRIBE' && covers(acl, missing))
      ? missing.operation
      : `(${[missing.operation, included[missing.operation]].filter(Boolean).join('|')})`
    expect((error as Error).message).toMatch(new RegExp(`\\b${operation}\\b.* on ${words} ${name}`))
  })
})

describe.skipIf(noJava)('with the least ACLs', () => {
  const envFor = (user: string) =>
    envOf(user, broker.secure.SECURE as string, authority.ca, {
      HOOKTIDE_TOPICS_PREFIX: names.prefix,
      HOOKTIDE_TOPICS_EVENTS: names.events,
      HOOKTIDE_TOPICS_LANES: '1',
      HOOKTIDE_TOPICS_TIERS: '[{name: retry-1s, delay: 1s}]',
      HOOKTIDE_KAFKA_GROUP_PREFIX: names.groupPrefix,
      HOOKTIDE_RETRY_CAP: '10s',
      HOOKTIDE_RETRY_RETRY_AFTER_CAP: '10s',
    })

  test('of cli every command works', async () => {
    expect(await runCommands(envFor('cli'))).toEqual([])
  })

  test('of api every command works through the API', async () => {
    expect(await runThroughApi(envFor('api'))).toEqual([])
  })
})

test('docs/security-kafka.md grants exactly these', () => {
  const text = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'security-kafka.md'), 'utf8')
  for (const role of ['router', 'deliverer', 'projector', 'api', 'cli'] as const) {
    const section = text.split(`### ${role}\n`)[1]?.split('\n### ')[0] ?? ''
    const listed = (word: string) =>
      new RegExp(`^${word}="([^"]*)"`, 'm').exec(section)?.[1]?.split(' ').filter(Boolean).sort()
    const named = (words: readonly string[]) =>
      words.map((word) => word.replace('{events}', '$EVENTS').replace('{tier}', '$TIERS')).sort()
    expect([role, listed('reads'), listed('writes')]).toEqual([role, named(uses[role].reads), named(uses[role].writes)])
  }
})
