import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import type { Output } from '../../src/cli/deps.ts'
import { runDemo } from '../../src/demo/demo.ts'
import type { Summary } from '../../src/demo/summary.ts'
import { testBroker } from '../support/broker.ts'
import { brokerDeps } from '../support/broker-options.ts'
import { realClock } from '../support/clock.ts'

const root = join(import.meta.dirname, '..', '..')

function output(): Output & { text: string } {
  return {
    text: '',
    isTTY: false,
    columns: 100,
    write(data) {
      this.text += String(data)
    },
  }
}

test('the demo delivers real payloads to good and bad endpoints on a real broker, and finds nothing wrong', {
  timeout: 180_000,
}, async () => {
  const { brokers } = await testBroker()
  const [stdout, stderr] = [output(), output()]
  const edge = {
    clock: realClock,
    env: { KAFKA_BROKERS: brokers },
    root: join(inject('brokerRun'), 'demo'),
    stdout,
    stderr,
    signal: new AbortController().signal,
    system: brokerDeps.system,
  }
  const good = await runDemo({ json: true, events: 60 }, edge)
  const summary = JSON.parse(stdout.text) as Summary
  expect(summary.findings).toEqual([])
  expect(good).toBe(true)
  const { total, subscriptions } = summary
  const of = (id: string) => subscriptions.find((subscription) => subscription.id === id)
  expect(summary.events).toBe(60)
  expect(total.expected).toBe(total.delivered + total.dead + total.unmatched + total.held)
  expect(of('plain')).toMatchObject({ expected: 60, delivered: 60, attempts: 60 })
  expect(of('ordered')?.delivered).toBe(60)
  expect(of('ordered')?.attempts).toBeGreaterThan(60)
  expect(of('flaky')?.attempts).toBeGreaterThan(80)
  expect(of('broken')).toMatchObject({ dead: 60, deadReasons: { rejected: 60 } })
  expect(of('gone')).toMatchObject({ status: 'disabled', delivered: 0 })
  expect(of('gone')?.deadReasons.gone).toBeGreaterThan(0)
  expect(summary.verified).toBe(summary.requests)
  expect(summary.tiers['retry-500ms']).toBeGreaterThan(0)
  expect(stderr.text).toMatch(/60 of 60 events, \d+ deliveries settled/)
})

test('SIGINT ends a running demo with what it started, without a verdict', { timeout: 180_000 }, async () => {
  const { brokers } = await testBroker()
  const child = spawn(process.execPath, [join(root, 'src', 'main.ts'), 'demo', '--events', '2000'], {
    env: { ...process.env, KAFKA_BROKERS: brokers, HOOKTIDE_BROKER: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, err, asked] = ['', '', false]
  child.stdout.on('data', (data) => {
    out += data
  })
  child.stderr.on('data', (data) => {
    err += data
    // Once: a second signal would end it at once.
    if (!asked && / [1-9]\d* deliveries settled/.test(err)) asked = child.kill('SIGINT')
  })
  const code = await new Promise<number | null>((resolve) => child.on('exit', resolve))
  expect(err).toContain('Interrupted')
  expect(code).toBe(1)
  expect(out).toBe('')
})
