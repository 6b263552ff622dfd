import { MatchIndex } from '../src/core/match-index.ts'
import type { Subscription } from '../src/core/subscription.ts'

/** What matching one event costs, by the number of subscriptions that do not match it: node bench/match-index.ts */
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

for (const count of [100, 10_000, 100_000]) {
  const index = new MatchIndex()
  for (let i = 0; i < count - 3; i++) index.set({ ...plain, id: `s${i}`, types: [`type${i}.created`, `other${i}.*`] })
  index.set({ ...plain, id: 'm1', types: ['order.created.v2'] })
  index.set({ ...plain, id: 'm2', types: ['order.*'] })
  index.set({ ...plain, id: 'm3', types: ['*'] })
  let matched = 0
  let best = Number.POSITIVE_INFINITY
  for (let run = 0; run < 5; run++) {
    const start = performance.now()
    for (let i = 0; i < events; i++) matched += index.match('default', 'order.created.v2').length
    best = Math.min(best, performance.now() - start)
  }
  if (matched !== events * 15) throw new Error(`${matched} matches, must be ${events * 15}`)
  console.log(`${count} subscriptions, 3 match: ${((best / events) * 1000).toFixed(2)} µs per event`)
}
