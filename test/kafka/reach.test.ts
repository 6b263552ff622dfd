import { expect, test } from 'vitest'
import { Reach } from '../../src/kafka/reach.ts'
import { Recorder } from './group-support.ts'

function stage() {
  let nowMs = 0
  const observer = new Recorder()
  const clock = { now: () => nowMs, mono: () => nowMs, after: () => () => undefined, random: () => 0.5 }
  const reach = new Reach(clock, observer)
  const wait = (ms: number) => {
    nowMs += ms
  }
  return { observer, reach, wait }
}

test('an outage of a broker is one warning that says what to do, and one line with its length when it is over', () => {
  const { observer, reach, wait } = stage()
  for (let i = 0; i < 50; i++) {
    reach.failed('kafka-1:9092', 'Connection error: connect ECONNREFUSED')
    wait(400)
  }
  reach.connected('kafka-2:9092')
  reach.connected('kafka-1:9092')
  reach.connected('kafka-1:9092')
  expect(observer.lines).toEqual([
    {
      level: 'warn',
      name: 'broker.unreachable',
      fields: {
        broker: 'kafka-1:9092',
        reason: 'Connection error: connect ECONNREFUSED',
        remedy: expect.stringMatching(/^Check that it is up and reachable/),
      },
    },
    { level: 'info', name: 'broker.reached', fields: { broker: 'kafka-1:9092', afterMs: 20_000, tries: 50 } },
  ])
})

test('each broker has its own outage; one that nobody tried for a minute is news again', () => {
  const { observer, reach, wait } = stage()
  reach.failed('a:1', 'x')
  reach.failed('b:1', 'x')
  wait(60_000)
  reach.failed('a:1', 'x')
  wait(1)
  reach.failed('b:1', 'x')
  expect(observer.lines.map(({ name, fields }) => [name, fields.broker])).toEqual([
    ['broker.unreachable', 'a:1'],
    ['broker.unreachable', 'b:1'],
    ['broker.unreachable', 'b:1'],
  ])
})
