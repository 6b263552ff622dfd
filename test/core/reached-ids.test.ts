import { expect, test } from 'vitest'
import { ReachedIds } from '../../src/core/reached-ids.ts'

const record = (deliveryId: string, settlement: string, subscriptionId = 'm') => ({
  key: Buffer.from(subscriptionId),
  value: Buffer.from(JSON.stringify({ deliveryId, subscriptionId, settlement })),
})

const cases: readonly (readonly [string, readonly string[], boolean])[] = [
  ['delivered at once', ['done'], true],
  ['failed, a retry is to come', ['scheduled'], true],
  ['failed, then delivered', ['scheduled', 'done'], true],
  ['dead', ['scheduled', 'dead'], false],
  ['cancelled', ['cancelled'], false],
  ['dead, then redriven and delivered', ['dead', 'done'], true],
  ['delivered, then replayed in vain', ['done', 'dead'], true],
  ['let go by a process that stopped', ['released'], false],
  ['never tried', [], false],
]

test.each(cases)('%s', (_, settlements, reached) => {
  const ids = new ReachedIds('m')
  for (const settlement of settlements) ids.add(record('msg_1', settlement))
  expect(ids.has('msg_1')).toBe(reached)
})

test("others' attempts, tombstones and what is no JSON say nothing", () => {
  const ids = new ReachedIds('m')
  ids.add(record('msg_1', 'done', 'n'))
  ids.add({ key: Buffer.from('m'), value: null })
  ids.add({ key: Buffer.from('m'), value: Buffer.from('{') })
  ids.add({ key: Buffer.from('m'), value: Buffer.from('null') })
  expect(ids.size).toBe(0)
})
