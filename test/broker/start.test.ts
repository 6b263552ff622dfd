import { expect, test } from 'vitest'
import { answersKafka } from '../../src/broker/handshake.ts'
import { testBroker } from '../support/broker.ts'
import { realClock } from '../support/clock.ts'

test('the shared test broker answers a Kafka handshake', async () => {
  const { brokers } = await testBroker()
  const [host, port] = brokers.split(':') as [string, string]
  expect(await answersKafka(realClock, host, Number(port), 5000)).toBe(true)
}, 110_000)
