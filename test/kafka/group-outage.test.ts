import type { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { OwnBroker } from '../../src/broker/options.ts'
import { library } from '../../src/kafka/load.ts'
import { ownBroker, testBroker } from '../support/broker.ts'
import { Member, newGroup, sleep, stock, until } from './group-support.ts'

const settings = { sessionMs: 6000, heartbeatMs: 500 }

describe('half-open connections', () => {
  test('answers stop coming on open sockets: a fresh link, same membership, nothing lost, no rebalance', async () => {
    const { brokers } = await testBroker()
    const tools = await stock(brokers)
    const topic = await tools.topic(1)
    const sockets: Socket[] = []
    const connect = library.socketFactory()
    const member = new Member(brokers, { group: newGroup(), topics: [topic], drainMs: 2000 }, settings, {
      socketFactory: (options) => {
        const socket = connect(options) as Socket
        sockets.push(socket)
        return socket
      },
    })
    await member.start()
    await tools.send(topic, 0, 'before')
    await until('before', () => member.values.length === 1)
    for (const socket of sockets.splice(0)) {
      socket.removeAllListeners('data')
      socket.on('data', () => {})
    }
    await tools.send(topic, 0, 'after')
    await until('after', () => member.values.length === 2, 6000)
    await until('the line', () => member.observer.named('consumer.recovered').length === 1)
    expect(member.values).toEqual(['before', 'after'])
    expect(member.assigned).toHaveLength(1)
    expect(member.revoked).toEqual([])
    expect(member.observer.named('consumer.unavailable')).toHaveLength(1)
    await tools.close()
  })
})

describe('a broker of our own', () => {
  let broker: OwnBroker
  let tools: Awaited<ReturnType<typeof stock>>
  beforeAll(async () => {
    broker = await ownBroker({
      security: {
        listeners: [{ name: 'SECURE', protocol: 'SASL_PLAINTEXT', mechanisms: ['SCRAM-SHA-256'] }],
        scram: [{ mechanism: 'SCRAM-SHA-256', user: 'ann', password: 'right' }],
        authorizer: true,
      },
    })
    tools = await stock(broker.brokers)
  }, 120_000)
  afterAll(async () => {
    await tools.close().catch(() => {})
    await broker.stop()
  })

  test.each([
    ['a wrong password', 'wrong', { code: 'broker.unauthenticated', remedy: expect.stringContaining('password') }],
    ['a missing ACL', 'right', { code: 'broker.unauthorized', remedy: expect.stringContaining('READ') }],
  ])('start gives up at once on %s, and says what to do', async (_what, password, expected) => {
    const topic = await tools.topic(1)
    const sasl = { mechanism: 'scram-sha-256' as const, username: 'ann', password }
    const address = broker.secure.SECURE as string
    const member = new Member(address, { group: newGroup(), topics: [topic], drainMs: 2000 }, settings, { sasl })
    const began = performance.now()
    await expect(member.start()).rejects.toMatchObject(expected)
    expect(performance.now() - began).toBeLessThan(5000)
  })

  test('killed and started again: consumption goes on by itself, with one line each way', async () => {
    const topic = await tools.topic(2)
    const group = newGroup()
    const member = await new Member(broker.brokers, { group, topics: [topic], drainMs: 2000 }, settings).start()
    await tools.send(topic, 0, 'before')
    await until('before', () => member.values.length === 1)
    await broker.kill()
    await until('the line', () => member.observer.named('consumer.unavailable').length === 1, 5000)
    // Started during the outage: start waits instead of failing.
    const late = new Member(broker.brokers, { group: newGroup(), topics: [topic], drainMs: 2000 }, settings)
    let lateStarted = false
    const starting = late.start().then(() => {
      lateStarted = true
    })
    await sleep(7000)
    expect(lateStarted).toBe(false)
    await broker.restart()
    await starting
    await tools.send(topic, 1, 'after')
    await until('after', () => member.values.includes('after'), 10_000)
    await until('the late one reads too', () => late.values.length === 2, 10_000)
    expect(member.values).toEqual(['before', 'after'])
    expect(member.fatal).toBeUndefined()
    for (const m of [member, late]) {
      expect(m.observer.named('consumer.unavailable')).toHaveLength(1)
      expect(m.observer.named('consumer.recovered')).toHaveLength(1)
      // Of all that kafkajs says, one line each way again.
      const news = m.observer.lines.filter(({ level, name }) => level !== 'debug' && !name.startsWith('consumer.'))
      expect(news.map(({ name }) => name)).toEqual(['broker.unreachable', 'broker.reached'])
    }
  }, 150_000)

  test('frozen for longer than the session: recovers by itself, reads on, and what it owns is told right', async () => {
    const topic = await tools.topic(2)
    const member = await new Member(
      broker.brokers,
      { group: newGroup(), topics: [topic], drainMs: 2000 },
      settings,
    ).start()
    await tools.send(topic, 0, 'before')
    await until('before', () => member.values.length === 1)
    broker.pause()
    await sleep(8000)
    expect(member.consumer.leaseAgeMs()).toBeGreaterThan(6000)
    broker.resume()
    await until('a fresh lease', () => member.consumer.leaseAgeMs() < 2000)
    await tools.send(topic, 1, 'after')
    await until('after', () => member.values.includes('after'))
    // Evicted or not, that is the coordinator's decision: who had to join again was told that nothing was kept.
    for (const again of member.assigned.slice(1)) expect(again.kept).toEqual([])
    expect(member.owned).toHaveLength(2)
  }, 60_000)
})
