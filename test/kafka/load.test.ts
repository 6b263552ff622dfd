import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { describe, expect, it } from 'vitest'
import { library } from '../../src/kafka/load.ts'
import { calmRequestQueue } from '../../src/kafka/patches/request-queue.ts'
import { stockKafkajs } from '../support/stock-kafkajs.ts'

const require = createRequire(import.meta.url)

describe('loading kafkajs', () => {
  it('is held to the version whose modules are replaced', () => {
    expect(require('kafkajs/package.json').version).toBe('2.2.4')
    expect(require('../../package.json').dependencies.kafkajs).toBe('2.2.4')
  })

  it('has the replacements in place', () => {
    expect(require('kafkajs/src/consumer/batch').name).toBe('FetchBatch')
    expect(require('kafkajs/src/protocol/requests/fetch/v11/response').decode).toBeTypeOf('function')
    expect(require('kafkajs/src/protocol/requests/fetch/v4/decodeMessages').name).toBe('decodeMessages')
    expect(library.kafkajs).toBe(require('kafkajs'))
  })

  it('refuses to work with a kafkajs that was loaded before it', () => {
    const script = `require('kafkajs'); import('./src/kafka/load.ts').then(() => console.log('loaded'), (e) => console.log(e.code, e.message))`
    const out = execFileSync(process.execPath, ['-e', script], {
      encoding: 'utf8',
      timeout: 20_000,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    expect(out).toMatch(/^internal kafkajs was loaded before its patches/)
  })
})

describe('idle connections (row 18)', () => {
  interface Queue {
    checkPendingRequests(): void
    throttledUntil: number
    throttleCheckTimeoutId: NodeJS.Timeout | null
    pending: unknown[]
    destroy(): void
  }
  type QueueClass = new (options: object) => Queue
  const options = {
    maxInFlightRequests: null,
    requestTimeout: 1000,
    enforceRequestTimeout: false,
    clientId: 'c',
    broker: 'b',
    logger: { debug() {} },
  }

  it('arm no timer with nothing to send; the stock library arms one after every response, and again when it fires', () => {
    const stock = stockKafkajs()<QueueClass>('network/requestQueue')
    const theirs = new stock(options)
    theirs.checkPendingRequests()
    expect(theirs.throttleCheckTimeoutId).not.toBe(null)
    theirs.destroy()
    const ours = new (require('kafkajs/src/network/requestQueue') as QueueClass)(options)
    ours.checkPendingRequests()
    expect(ours.throttleCheckTimeoutId).toBe(null)
  })

  it('still send what a broker has throttled, once it may go', () => {
    const Stock = stockKafkajs()<QueueClass>('network/requestQueue')
    calmRequestQueue(Stock as never)
    const queue = new Stock(options)
    queue.throttledUntil = Date.now() + 60_000
    queue.pending.push({})
    queue.checkPendingRequests()
    expect(queue.throttleCheckTimeoutId).not.toBe(null)
    queue.destroy()
  })
})
