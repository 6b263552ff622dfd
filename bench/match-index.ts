import { MatchIndex } from '../src/core/match-index.ts'
import type { Subscription } from '../src/core/subscription.ts'
import { Rows } from './result.ts'
import type { Scenario } from './scenario.ts'

const events = 100_000
const plain: Omit<Subscription, 'id' | 'types'> = {
  v: 1,
  tenant: 'default',
  url: 'https://example.com/',
  ordering: 'key',
  status: 'active',
  secrets: [{ ref: 'env:A' }],
  createdAtMs: 0,
  updatedAtMs: 0,
}

/** What matching one event costs, by the number of subscriptions that do not want it. */
export const match: Scenario = {
  name: 'match',
  about: 'an event that three subscriptions want, by how many others there are',
  bare: true,
  async run() {
    const rows = new Rows()
    for (const count of [100, 10_000, 100_000]) {
      const index = indexOf(count)
      for (let round = 0; round < 5; round++) {
        let matched = 0
        const start = performance.now()
        for (let i = 0; i < events; i++) matched += index.match('default', 'order.created.v2').length
        const us = ((performance.now() - start) / events) * 1000
        if (matched !== events * 3) throw new Error(`${matched} matches, must be ${events * 3}`)
        rows.add(`${count} subscriptions`, { 'µs per event': us })
      }
    }
    return { rows: rows.all(), targets: [{ row: '100000 subscriptions', figure: 'µs per event', atMost: 20 }] }
  },
}

function indexOf(count: number): MatchIndex {
  const index = new MatchIndex()
  for (let i = 0; i < count - 3; i++) index.set({ ...plain, id: `s${i}`, types: [`type${i}.created`, `other${i}.*`] })
  index.set({ ...plain, id: 'm1', types: ['order.created.v2'] })
  index.set({ ...plain, id: 'm2', types: ['order.*'] })
  index.set({ ...plain, id: 'm3', types: ['*'] })
  return index
}
