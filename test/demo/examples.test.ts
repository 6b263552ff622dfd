import { expect, test } from 'vitest'
import { parseEvent } from '../../src/core/event-format.ts'
import { eventRecord, exampleOf, loadExamples } from '../../src/demo/examples.ts'

const to = { topic: 'events', partitions: 12, run: 'r1' }

test('every example of the package is an event that the router takes, with an id of its own each time round', () => {
  const examples = loadExamples()
  expect(examples.length).toBeGreaterThan(300)
  const ids = new Set<string>()
  for (let n = 0; n < 2 * examples.length; n++) {
    const record = eventRecord(examples, n, to)
    const read = {
      offset: n,
      timestampMs: 0,
      key: record.key === null ? null : Buffer.from(record.key),
      value: record.value,
      headers: record.headers,
    }
    const event = parseEvent(
      read,
      { topic: 'events', partition: record.partition },
      { maxBytes: 262_144, maxHeaders: 64 },
    )
    if (!event.ok) throw new Error(event.reason)
    expect(event.value.orderingKey).toBe(examples[n % examples.length]?.key)
    ids.add(event.value.id)
  }
  expect(ids.size).toBe(2 * examples.length)
})

test.each([
  ['type with action', { action: 'opened' }, 'issues.opened', null],
  ['repository first', { repository: { full_name: 'a/b' }, organization: { login: 'a' } }, 'issues', 'a/b'],
  ['else the organisation', { organization: { login: 'a' }, sender: { login: 's' } }, 'issues', 'a'],
  ['else the sender', { sender: { login: 's' } }, 'issues', 's'],
])('example: %s', (_what, payload, type, key) => {
  expect(exampleOf('issues', payload)).toMatchObject({ type, key })
})
