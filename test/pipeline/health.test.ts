import { expect, test } from 'vitest'
import { PipelineHealth } from '../../src/app/health.ts'
import type { Pipeline } from '../../src/pipeline/assemble.ts'
import { Executor } from '../../src/pipeline/executor.ts'
import type { Work } from '../../src/pipeline/work.ts'
import { FakeClock } from '../sim/fake-clock.ts'

/** An executor with room for one POST and always more to do. */
function busyProcess() {
  const clock = new FakeClock()
  const open: Work[] = []
  const executor = new Executor(
    {
      maxInFlight: 1,
      maxInFlightBytes: 1_000,
      retryShare: 1,
      maxPerSubscription: 1,
      maxPerOrigin: 1,
      maxPerOriginPerSecond: null,
      leased: () => true,
    },
    clock,
    () => ({ origin: 'https://a.test', maxInFlight: 1, rate: null, lanes: 1, ready: null }),
    (work) => open.push(work),
  )
  const offer = (id: string) => {
    const delivery = { id, subscriptionId: 's', attempts: 0, body: Buffer.alloc(0), origin: { stream: 'events/0' } }
    const record = { headers: {} }
    executor.offer({ delivery, record, bytes: 1, line: null, owner: { begin: () => 'go' } } as unknown as Work)
  }
  const lease = { ageMs: 0 }
  const pipeline = { executor, deliverer: null, leaseAgeMs: () => lease.ageMs } as unknown as Pipeline
  const health = new PipelineHealth(pipeline, clock, {
    stalledMs: 10_000,
    gainingMs: 10_000,
    leaseMs: 5_000,
    outageMs: 60_000,
  })
  return { clock, executor, health, offer, open, lease }
}

test('a process that always has work ready is healthy as long as POSTs end', async () => {
  const { clock, executor, health, offer, open } = busyProcess()
  for (let n = 0; n < 40; n++) offer(`d${n}`)
  for (let n = 0; n < 30; n++) {
    await clock.advance(1_000)
    executor.finished(open.at(-1) as Work)
    expect(executor.ready).toBeGreaterThan(0)
    expect(health.check()).toEqual({ ok: true, reasons: [] })
  }
})

test('a process whose POSTs end no more while work is ready is not', async () => {
  const { clock, health, offer } = busyProcess()
  for (let n = 0; n < 3; n++) offer(`d${n}`)
  health.check()
  await clock.advance(10_001)
  expect(health.check()).toMatchObject({ ok: false, reasons: [expect.stringContaining('2 deliveries are ready')] })
})

test('while Kafka is away a standstill is no reason for a restart, until it has been away too long', async () => {
  const { clock, health, offer, lease } = busyProcess()
  for (let n = 0; n < 3; n++) offer(`d${n}`)
  lease.ageMs = 30_000
  await clock.advance(30_000)
  expect(health.check()).toEqual({ ok: true, reasons: [] })
  lease.ageMs = 60_001
  expect(health.check()).toMatchObject({
    ok: false,
    reasons: [expect.stringContaining('not confirmed our membership')],
  })
  // Back: the time of the outage does not count.
  lease.ageMs = 0
  expect(health.check().ok).toBe(true)
  await clock.advance(10_001)
  expect(health.check().ok).toBe(false)
})
