import { afterEach, expect, test } from 'vitest'
import { Drill } from '../../src/app/rehearsal-drill.ts'
import { rehearse } from '../../src/app/rehearse.ts'
import { createObserver } from '../../src/observe/observer.ts'
import { hooktide } from '../cli/support.ts'
import { realClock } from '../support/clock.ts'
import { addresses } from '../support/kafka.ts'
import { Log } from './log.ts'

const undo: (() => void)[] = []
afterEach(() => {
  for (const step of undo.splice(0)) step()
})

test('a rehearsal on a real broker: stopped, a backlog, started again, the dead redriven under their ids', async () => {
  const observer = createObserver({ clock: realClock, stream: new Log(), processMetrics: false })
  undo.push(() => observer.close())
  const env = {
    KAFKA_BROKERS: (await addresses()).join(','),
    HOOKTIDE_TOPICS_LANES: '2',
    HOOKTIDE_TOPICS_PREFIX: 'live.',
    HOOKTIDE_KAFKA_SESSION_TIMEOUT: '10s',
    HOOKTIDE_DELIVERER_DRAIN: '5s',
    HOOKTIDE_HTTP_TOTAL_TIMEOUT: '4s',
    HOOKTIDE_HTTP_CONNECT_TIMEOUT: '1s',
  }
  const stderr = { write: () => undefined, isTTY: false, columns: 100 }
  const signal = new AbortController().signal
  const played = await hooktide(['rehearse', '--events', '100'], {
    env,
    rehearse: (options) => rehearse(options, { clock: realClock, env, observer, stderr, signal }),
  })
  expect([played.err, played.code, played.out]).toEqual([
    '',
    0,
    expect.stringContaining('ok      nothing is delivered twice'),
  ])
  expect(played.out).toMatch(/The topics rehearse\.[a-z0-9-]+\.\* stay/)
  expect(played.out).not.toContain('FAILED')
}, 120_000)

test('a check that does not hold is told, and the command exits 1', async () => {
  const drill = new Drill({ clock: realClock, signal: new AbortController().signal, note: () => undefined, events: 1 })
  const post = (n: number, status: number, deliveryId: string) =>
    drill.received({ body: Buffer.from(JSON.stringify({ n })), status, deliveryId, verdict: 'verified' } as never)
  let status = 200
  const world = {
    // The second sending of the dead has another id, and the first event comes twice.
    produce: async (numbers: readonly number[]) => numbers.forEach((n) => void post(n, status, `d${n}`)),
    answer(now: number) {
      status = now
    },
    startService: async () => ({ stop: async () => undefined }),
    dead: async () => 1,
    jobs: {
      async redrive() {
        post(2, 200, 'another')
        post(0, 200, 'd0')
        return { id: 'j' }
      },
      show: async () => ({ state: 'done', written: 1 }),
    },
  }
  const report = await drill.play(world as never)
  expect(report.checks.filter(({ ok }) => !ok).map(({ what }) => what)).toEqual([
    'nothing is delivered while it is stopped',
    'nothing is delivered twice',
    'the redriven have the ids that they had',
  ])
  expect(report.ok).toBe(false)
  const told = await hooktide(['rehearse', '--json'], { rehearse: async () => ({ ...report, prefix: 'rehearse.x.' }) })
  expect([told.code, JSON.parse(told.out).ok]).toEqual([1, false])
})
