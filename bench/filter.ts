import { EventFacts } from '../src/core/event-facts.ts'
import { compileFilter, evaluate, type Filter } from '../src/core/filter.ts'
import { evilFilters } from './evil-filters.ts'

/** What a filter costs per event and subscription, and what filters and bodies cost that were made to take long. */
export function benchFilter(write: (line: string) => void): boolean {
  let good = true
  const body = Buffer.from(
    JSON.stringify({ status: 'paid', total: 120, items: [{ sku: 'a' }, { sku: 'b' }], text: 'x'.repeat(900) }),
  )
  const filters = {
    'one condition of the event': { 'event.type': 'order.created' },
    'one condition of the body': { 'body.status': 'paid' },
    'five conditions': {
      'body.status': { $in: ['paid', 'sent'] },
      'body.total': { $gte: 100, $lt: 1_000 },
      'body.items.*.sku': 'b',
      'body.none': { $exists: false },
    },
  }
  for (const [name, asked] of Object.entries(filters)) {
    const filter = compiled(asked)
    const us = best(5, () => {
      const facts = factsOf(body)
      void facts.body
      const start = performance.now()
      for (let i = 0; i < subscriptions; i++) if (evaluate(filter, facts) !== true) throw new Error(`${name}: no match`)
      return ((performance.now() - start) / subscriptions) * 1_000
    })
    good &&= us <= 2
    write(`${name}: ${us.toFixed(3)} µs per subscription (target 2)`)
  }
  const parseUs = best(5, () => {
    const start = performance.now()
    for (let i = 0; i < 2_000; i++) void factsOf(body).body
    return ((performance.now() - start) / 2_000) * 1_000
  })
  write(`parsing a body of ${body.length} bytes, once per event: ${parseUs.toFixed(1)} µs`)
  let worst = { name: '', ms: 0 }
  const evil = evilFilters()
  for (const [name, asked, text] of evil) {
    const filter = compiled(asked)
    const bytes = Buffer.from(text)
    let parseMs = 0
    const ms = best(3, () => {
      const facts = factsOf(bytes)
      const parsing = performance.now()
      void facts.body
      parseMs = performance.now() - parsing
      const start = performance.now()
      evaluate(filter, facts)
      return performance.now() - start
    })
    write(
      `  ${name}: ${ms.toFixed(2)} ms (and ${parseMs.toFixed(1)} to parse its ${bytes.length} bytes, once per event)`,
    )
    if (ms > worst.ms) worst = { name, ms }
  }
  good &&= worst.ms < 5
  write(`${evil.length} evil ones: the worst ${worst.ms.toFixed(2)} ms (${worst.name}; target 5)`)
  return good
}

function factsOf(body: Buffer): EventFacts {
  const contentType = 'application/json'
  return new EventFacts({ id: 'e', type: 'order.created', tenant: 't', key: null, contentType, timeMs: 0 }, body)
}

function compiled(asked: unknown): Filter {
  const result = compileFilter(asked)
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  return result.value
}

function best(runs: number, run: () => number): number {
  return Math.min(...Array.from({ length: runs }, run))
}

const subscriptions = 100_000
