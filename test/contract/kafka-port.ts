import { afterAll, beforeAll, describe, it } from 'vitest'
import { groupContract } from './group-contract.ts'
import { logContract } from './log-contract.ts'
import { transactionContract } from './transaction-contract.ts'
import type { World } from './world.ts'

export interface Case {
  readonly name: string
  body(world: World): Promise<void>
}

/**
 * What everything above the Kafka port relies on. Held against the memory broker and against real Kafka, so that a
 * simulation on the one says something about the other.
 */
export function kafkaPortContract(makeWorld: () => Promise<World>): void {
  const sections = [
    ['logs', logContract],
    ['transactions', transactionContract],
    ['groups', groupContract],
  ] as const
  for (const [section, cases] of sections) {
    describe(section, () => {
      let world: World
      beforeAll(async () => {
        world = await makeWorld()
      })
      afterAll(() => world?.close())
      for (const { name, body } of cases) it(name, () => world.run(() => body(world)), 60_000)
    })
  }
}
