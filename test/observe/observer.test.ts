import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import { catalogue, exportedName } from '../../src/observe/catalogue.ts'
import { createObserver, type LogStream, type ObserverOptions } from '../../src/observe/observer.ts'
import { FakeClock } from '../sim/fake-clock.ts'

function observer(options: Partial<ObserverOptions> = {}) {
  const clock = new FakeClock({ startMs: Date.UTC(2030, 0, 2, 3, 4, 5, 6) })
  const lines: string[] = []
  const made = createObserver({
    clock,
    stream: { write: (line) => lines.push(line) },
    processMetrics: false,
    ...options,
  })
  const page = async () =>
    (await made.metrics()).body.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return { clock, lines, made, page }
}

describe('log', () => {
  it('writes one JSON object a line with level, time of the given clock, event and fields', () => {
    const { lines, made } = observer({ base: { instance: 'i1' } })
    made.log('warn', 'lane.commit_failed', { lane: 3, code: 'producer.fenced', none: null, absent: undefined })
    expect(lines).toHaveLength(1)
    expect(lines[0]?.endsWith('\n')).toBe(true)
    expect(JSON.parse(lines[0] ?? '')).toEqual({
      level: 'warn',
      time: '2030-01-02T03:04:05.006Z',
      instance: 'i1',
      lane: 3,
      code: 'producer.fenced',
      none: null,
      event: 'lane.commit_failed',
    })
  })

  it('leaves out what is below its level', () => {
    const { lines, made } = observer()
    made.log('debug', 'a')
    made.log('info', 'b')
    expect(lines.map((line) => JSON.parse(line).event)).toEqual(['b'])
  })

  it('lets no field pass for the line’s own keys, nor break the line', () => {
    const { lines, made } = observer()
    made.log('info', 'x', { level: 'error', time: 'never', event: 'forged', text: 'a\nb' })
    expect(lines.join('').match(/\n/g)).toHaveLength(1)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      level: 'info',
      event: 'x',
      level_: 'error',
      event_: 'forged',
      text: 'a\nb',
    })
  })

  it('redacts whatever goes through it', () => {
    const { lines, made } = observer({ base: { broker: 'kafka://u:hunter2@b/' } })
    made.log('error', 'failed https://u:hunter2@h/', {
      url: 'https://u:hunter2@h/?hunter2',
      error: 'Bearer hunter2',
      token: 'hunter2',
    })
    expect(lines[0]).not.toContain('hunter2')
  })

  it('is for people on a terminal, in colour, without letting a field steer it', () => {
    const stream = { isTTY: true, written: '', write: (line: string) => (stream.written += line) }
    const { made } = observer({ stream })
    made.log('info', 'delivery.attempted', { lane: 3, error: 'two words \u001b[2J', url: 'https://h.test/p' })
    const csi = '\u001b['
    expect(stream.written).toContain('03:04:05.006')
    expect(stream.written).toContain(`${csi}1mdelivery.attempted${csi}0m`)
    expect(stream.written).toContain('"two words \\u001b[2J"')
    expect(stream.written).not.toContain(`${csi}2J`)
  })

  it('is plain text when asked to be readable elsewhere', () => {
    const { lines, made } = observer({ format: 'pretty' })
    made.log('error', 'lane.gained', { lane: 3, undone: 0 })
    expect(lines).toEqual(['03:04:05.006 ERROR lane.gained lane=3 undone=0\n'])
  })

  it('survives a stream that throws and one that breaks', () => {
    const stream: LogStream & EventEmitter = Object.assign(new EventEmitter(), {
      write: () => {
        throw new Error('full')
      },
    })
    const { made } = observer({ stream })
    expect(() => made.log('info', 'x')).not.toThrow()
    expect(() => stream.emit('error', new Error('EPIPE'))).not.toThrow()
  })
})

describe('metrics', () => {
  it('counts and times by catalogue, in seconds, with the labels the catalogue has', async () => {
    const { made, page } = observer()
    made.count('attempts', 2, { outcome: 'delivered', settlement: 'done', subscription: 's1' })
    made.count('attempts', 1, { outcome: 'delivered', settlement: 'done' })
    made.count('secret.unavailable')
    made.time('attempt', 1500, { outcome: 'delivered' })
    const lines = await page()
    expect(lines).toContain('hooktide_attempts_total{outcome="delivered",settlement="done"} 3')
    expect(lines).toContain('hooktide_secret_unavailable_total 1')
    expect(lines).toContain('hooktide_attempt_seconds_sum{outcome="delivered"} 1.5')
    expect(lines).toContain('hooktide_attempt_seconds_bucket{le="2.5",outcome="delivered"} 1')
    expect(lines).toContain('hooktide_attempt_seconds_bucket{le="1",outcome="delivered"} 0')
    expect(lines.join('\n')).not.toContain('s1')
  })

  it('has every metric from the start, with its help, and counters without labels at zero: a rate must see the first one', async () => {
    const { made, page } = observer()
    const { body } = await made.metrics()
    for (const [name, { kind, help }] of Object.entries(catalogue))
      expect(body).toContain(`# HELP ${exportedName(name, kind)} ${help}`)
    expect(await page()).toContain('hooktide_repeats_dropped_total 0')
    made.count('repeats_dropped')
    expect(await page()).toContain('hooktide_repeats_dropped_total 1')
  })

  it('keeps the values of a label bounded', async () => {
    const { made, page } = observer()
    for (let i = 0; i < 500; i++) made.count('events_rejected', 1, { code: `c${i}` })
    const lines = (await page()).filter((line) => line.startsWith('hooktide_events_rejected_total'))
    expect(lines).toHaveLength(101)
    expect(lines).toContain('hooktide_events_rejected_total{code="other"} 400')
  })

  it('puts no secret into a label', async () => {
    const { made, page } = observer()
    made.count('events_rejected', 1, { code: 'https://u:hunter2@h/?q=hunter2' })
    expect((await page()).join('\n')).not.toContain('hunter2')
  })

  it('names what is not in the catalogue once, counts it, and goes on', async () => {
    const { made, page, lines } = observer()
    for (let i = 0; i < 3; i++) made.count('no_such_thing')
    made.time('attempts', 5)
    expect(lines.map((line) => JSON.parse(line).metric)).toEqual(['no_such_thing', 'attempts'])
    expect(await page()).toContain('hooktide_unknown_metrics_total 4')
  })

  it('ignores numbers that are none', async () => {
    const { made, page } = observer()
    made.count('repeats_dropped', Number.NaN)
    made.count('repeats_dropped', -1)
    made.time('commit', Number.POSITIVE_INFINITY)
    made.time('commit', -5)
    expect(await page()).toContain('hooktide_commit_seconds_sum 0')
    expect((await page()).filter((line) => line.startsWith('hooktide_repeats'))).toEqual([
      'hooktide_repeats_dropped_total 0',
    ])
  })

  it('measures the process too, unless told not to', async () => {
    const { made } = observer({ processMetrics: true })
    expect((await made.metrics()).body).toContain('process_resident_memory_bytes')
    made.close()
  })
})

describe('vital signs', () => {
  it('are read when asked for, from every provider, and what is unknown is absent', async () => {
    const { clock, made, page } = observer()
    const empty = await page()
    expect(empty).toContain('hooktide_ready_depth 0')
    expect(empty.some((line) => line.startsWith('hooktide_clock_offset'))).toBe(false)

    let ready = 3
    made.registerVitals(() => ({
      readyDepth: ready,
      oldestReadyAgeMs: 1500,
      inFlight: { count: 2, bytes: 300 },
      tiers: [
        { tier: '10s', held: 4, lowestDueMs: clock.now() - 250, promoted: 7 },
        { tier: '1m', held: 0, lowestDueMs: null, promoted: 1 },
      ],
      clockOffsetMs: -20,
      paused: { span: 1 },
      lanes: [
        { lane: 0, state: 'running' },
        { lane: 1, state: 'running' },
        { lane: 2, state: 'gaining' },
      ],
    }))
    const remove = made.registerVitals(() => ({ readyDepth: 10, oldestReadyAgeMs: 500, paused: { span: 1, bytes: 2 } }))
    ready = 5
    const lines = await page()
    expect(lines).toEqual(
      expect.arrayContaining([
        'hooktide_ready_depth 15',
        'hooktide_oldest_ready_age_seconds 1.5',
        'hooktide_in_flight 2',
        'hooktide_in_flight_bytes 300',
        'hooktide_tier_held{tier="10s"} 4',
        'hooktide_tier_lowest_due_seconds{tier="10s"} -0.25',
        'hooktide_tier_promoted_total{tier="10s"} 7',
        'hooktide_clock_offset_seconds -0.02',
        'hooktide_paused_partitions{reason="span"} 2',
        'hooktide_paused_partitions{reason="bytes"} 2',
        'hooktide_lanes{state="running"} 2',
        'hooktide_lanes{state="gaining"} 1',
      ]),
    )
    expect(lines.some((line) => line.startsWith('hooktide_tier_lowest_due_seconds{tier="1m"}'))).toBe(false)
    remove()
    const after = await page()
    expect(after).toContain('hooktide_ready_depth 5')
    // A counter read twice is not added up.
    expect(after).toContain('hooktide_tier_promoted_total{tier="10s"} 7')
    expect(after).not.toContain('hooktide_paused_partitions{reason="bytes"} 2')
  })

  it('a provider that throws takes nothing else along', async () => {
    const { made, page } = observer()
    made.registerVitals(() => {
      throw new Error('closed')
    })
    made.registerVitals(() => ({ readyDepth: 1 }))
    expect(await page()).toContain('hooktide_ready_depth 1')
  })

  it('lag is asked for from time to time, not at a scrape; a failure makes it absent and is told once', async () => {
    const { clock, made, page, lines } = observer({ lagEveryMs: 1_000 })
    let asked = 0
    const stop = made.registerLag(async () => {
      asked++
      if (asked === 3 || asked === 4) throw new Error('broker away')
      return [{ group: 'lanes', topic: 'deliveries', records: asked * 10 }]
    })
    await clock.advance(500)
    for (let i = 0; i < 3; i++)
      expect(await page()).toContain('hooktide_consumer_lag{group="lanes",topic="deliveries"} 10')
    await clock.advance(1_000)
    expect(made.vitals().lag).toEqual([{ group: 'lanes', topic: 'deliveries', records: 20 }])
    await clock.advance(2_000)
    expect(made.vitals().lag).toEqual([])
    expect(lines.map((line) => JSON.parse(line).event)).toEqual(['lag.unknown'])
    await clock.advance(1_000)
    expect(made.vitals().lag[0]?.records).toBe(50)
    stop()
    await clock.advance(5_000)
    expect(asked).toBe(5)
    expect(clock.pending).toBe(0)
  })
})
