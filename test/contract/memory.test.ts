import { describe } from 'vitest'
import { FakeClock } from '../sim/fake-clock.ts'
import { MemoryBroker } from '../sim/memory-broker.ts'
import { kafkaPortContract } from './kafka-port.ts'
import { out, type World } from './world.ts'

function memoryWorld(seed: number): World {
  const clock = new FakeClock({ seed })
  const sessionTimeoutMs = 6_000
  const broker = new MemoryBroker(clock, { seed, sessionTimeoutMs, heartbeatMs: 200 })
  let names = 0
  return {
    clock,
    maxMessageBytes: broker.settings.maxMessageBytes,
    sessionTimeoutMs,
    kafka: (processId = 'p') => broker.client(processId),
    unique: (name) => `${name}-${++names}`,
    createTopic: async (name, wish) => {
      const topic = `${name}-${++names}`
      broker.createTopic(topic, wish)
      return topic
    },
    foreignTransaction: async (at, values) => {
      const id = `foreign-${++names}`
      const epoch = await broker.transactions.init(id)
      const records = values.map((value) => out(at, value))
      await broker.transactions.append(id, epoch, broker.log(at.topic, at.partition), records, () => clock.now())
      const end = async (commit: boolean) => {
        broker.transactions.end(id, epoch, commit)
        await broker.transactions.init(id)
      }
      return { commit: () => end(true), abort: () => end(false) }
    },
    compact: async ({ topic }) => broker.compact(topic),
    run: (body) => clock.drive(body()),
    close: async () => {},
  }
}

for (const seed of [1, 2, 3])
  describe(`Kafka port on the memory broker, seed ${seed}`, () => kafkaPortContract(async () => memoryWorld(seed)))
