import { describe, expect, test } from 'vitest'
import { HooktideError } from '../../src/core/error.ts'
import { groupError, isFinal, troubleOf } from '../../src/kafka/group-errors.ts'
import { Outage } from '../../src/kafka/group-outage.ts'
import { FailureBudget, Wakeup } from '../../src/kafka/group-watchdog.ts'
import { library } from '../../src/kafka/load.ts'
import type { Clock } from '../../src/ports.ts'
import { Recorder } from './group-support.ts'

class ManualClock implements Clock {
  nowMs = 0
  #timers: { at: number; fn: () => void }[] = []
  now() {
    return this.nowMs
  }
  mono() {
    return this.nowMs
  }
  random() {
    return 0.5
  }
  after(ms: number, fn: () => void) {
    const timer = { at: this.nowMs + ms, fn }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((t) => t !== timer)
    }
  }
  advance(ms: number) {
    this.nowMs += ms
    const due = this.#timers.filter((t) => t.at <= this.nowMs)
    this.#timers = this.#timers.filter((t) => t.at > this.nowMs)
    for (const { fn } of due) fn()
  }
  get timers() {
    return this.#timers.length
  }
}

describe('failure budget', () => {
  test('is used up by more than its number within a minute, and refills as they get old', () => {
    const clock = new ManualClock()
    const budget = new FailureBudget(clock, 2)
    expect([budget.spend(), budget.spend(), budget.spend()]).toEqual([false, false, true])
    clock.advance(60_000)
    expect(budget.spend()).toBe(false)
  })
})

describe('wakeup', () => {
  test('ends a wait by time or by fire, and remembers one fire', async () => {
    const clock = new ManualClock()
    const wakeup = new Wakeup(clock)
    const byTime = wakeup.wait(100)
    clock.advance(100)
    await byTime
    const byFire = wakeup.wait(100)
    wakeup.fire()
    await byFire
    wakeup.fire()
    await wakeup.wait(100)
    expect(clock.timers).toBe(0)
  })
})

describe('outage', () => {
  test('is one line at its begin and one at its end, however many tries; the delay grows to 2 s', () => {
    const clock = new ManualClock()
    const observer = new Recorder()
    const outage = new Outage(clock, observer, 'g')
    const delays = Array.from({ length: 8 }, () => outage.failed(new Error('gone')))
    clock.advance(40_000)
    outage.over()
    outage.over()
    expect(delays).toEqual([100, 200, 400, 800, 1600, 2000, 2000, 2000])
    expect(observer.lines).toEqual([
      {
        level: 'warn',
        name: 'consumer.unavailable',
        fields: { group: 'g', reason: 'gone', remedy: expect.any(String) },
      },
      { level: 'info', name: 'consumer.recovered', fields: { group: 'g', afterMs: 40_000, tries: 8 } },
    ])
  })

  test('a coordinator that is gone for a moment is no line; one that stays away is', () => {
    const clock = new ManualClock()
    const observer = new Recorder()
    const outage = new Outage(clock, observer, 'g')
    outage.failed(new Error('moving'), 'passing')
    outage.over()
    expect(observer.lines).toEqual([])
    outage.failed(new Error('moving'), 'passing')
    clock.advance(3000)
    outage.failed(new Error('moving'), 'passing')
    expect(observer.named('consumer.unavailable')).toHaveLength(1)
  })
})

describe('troubles', () => {
  const of = (code: number) => library.createErrorFromCode(code)
  const table: [string, unknown, ReturnType<typeof troubleOf>][] = [
    ['REBALANCE_IN_PROGRESS', of(27), 'rebalance'],
    ['UNKNOWN_MEMBER_ID', of(25), 'evicted'],
    ['ILLEGAL_GENERATION', of(22), 'evicted'],
    ['NOT_COORDINATOR', of(16), 'coordinator'],
    ['COORDINATOR_LOAD_IN_PROGRESS', of(14), 'coordinator'],
    ['OFFSET_OUT_OF_RANGE', of(1), 'offset'],
    ['NOT_LEADER_OR_FOLLOWER', of(6), 'metadata'],
    ['GROUP_AUTHORIZATION_FAILED', of(30), 'forbidden'],
    ['UNKNOWN_SERVER_ERROR', of(-1), 'unavailable'],
    ['our deadline', new HooktideError('broker.timeout', 'late'), 'unavailable'],
    ['a missing topic', new HooktideError('topic.missing', 't'), 'topic'],
    ['a refused connection', Object.assign(new Error('x'), { code: 'ECONNREFUSED' }), 'unavailable'],
    ['a wrong CA', Object.assign(new Error('x'), { code: 'SELF_SIGNED_CERT_IN_CHAIN' }), 'forbidden'],
    ['a bug', new TypeError('x'), 'unexpected'],
    ['nothing', undefined, 'unexpected'],
  ]
  test.each(table)('%s', (_name, error, trouble) => {
    expect(troubleOf(error)).toBe(trouble)
  })

  test('start gives up on what only a person heals: at once, or for a topic after a moment', () => {
    expect(isFinal(of(30), 0)).toBe(true)
    expect(isFinal(new HooktideError('topic.missing', 't'), 100)).toBe(false)
    expect(isFinal(new HooktideError('topic.missing', 't'), 5000)).toBe(true)
    expect(isFinal(Object.assign(new Error('x'), { code: 'ECONNREFUSED' }), 1e6)).toBe(false)
  })

  test('what a person must do is in the remedy', () => {
    expect(groupError(of(30), 'start', 'deliver')).toMatchObject({
      code: 'broker.unauthorized',
      remedy: expect.stringContaining('group deliver'),
    })
    expect(groupError(of(23), 'start', 'deliver')).toMatchObject({ code: 'broker.incompatible' })
    expect(groupError(of(26), 'start', 'deliver')).toMatchObject({ code: 'config.invalid' })
    expect(groupError(of(25), 'commit', 'deliver')).toMatchObject({ code: 'consumer.failed' })
  })
})
