import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { readLines } from '../../src/cli/read-text.ts'
import { HooktideError } from '../../src/core/error.ts'
import { partitionOf } from '../../src/core/partition.ts'
import { type EventOptions, eventRecord } from '../../src/operations/produce-event.ts'
import { readTopic } from '../../src/operations/read-topic.ts'
import { testKafka } from '../support/kafka.ts'
import { atEnd, hooktide, ownWorld } from './support.ts'

const limits = { maxBytes: 1000, maxHeaders: 64 }
const base: EventOptions = { topic: 't', partitions: 8, limits }
const body = Buffer.from('{"kind":"order.paid","n":7,"repo":{"name":"r"}}')

describe('the record of an event', () => {
  const texts = (headers: Readonly<Record<string, Buffer>>) =>
    Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))

  test.each<[string, Partial<EventOptions>, number, boolean, object]>([
    ['type alone', { type: 'a' }, 0, false, { key: null, partition: 0, headers: { 'event-type': 'a' } }],
    ['no key: spread over the partitions', { type: 'a' }, 10, true, { key: null, partition: 2 }],
    ['key decides the partition', { type: 'a', key: 'k' }, 3, true, { key: 'k', partition: partitionOf('k', 8) }],
    [
      'type, id and key from fields',
      { typeFrom: 'kind', idFrom: 'n', keyFrom: 'repo.name' },
      0,
      false,
      { key: 'r', headers: { 'event-type': 'order.paid', 'event-id': '7' } },
    ],
    [
      'repeated: ids are kept apart',
      { type: 'a', id: 'x' },
      2,
      true,
      { headers: { 'event-type': 'a', 'event-id': 'x-3' } },
    ],
    [
      'tenant and content type',
      { type: 'a', tenant: 'acme', contentType: 'text/plain' },
      0,
      false,
      { headers: { 'event-type': 'a', 'event-tenant': 'acme', 'content-type': 'text/plain' } },
    ],
  ])('%s', (_name, options, number, repeated, expected) => {
    const record = eventRecord(body, { ...base, ...options }, number, repeated, 'it')
    expect({ ...record, headers: texts(record.headers) }).toMatchObject({ ...expected, value: body })
  })

  test('an envelope needs no option, and its own key decides the partition', () => {
    const envelope = Buffer.from('{"type":"a","key":"k9"}')
    expect(eventRecord(envelope, base, 0, false, 'it')).toMatchObject({ key: 'k9', partition: partitionOf('k9', 8) })
  })

  test.each<[string, Buffer, Partial<EventOptions>, string]>([
    ['no type at all', body, {}, 'line 4 would be rejected: the event has no type'],
    ['a malformed type', body, { type: 'a b' }, 'line 4 would be rejected: type "a b" is malformed'],
    ['too large', Buffer.alloc(1001, 32), { type: 'a' }, 'line 4 would be rejected: value of 1001 bytes'],
    ['a field that is not there', body, { typeFrom: 'repo.kind' }, 'line 4 has no text or number at repo.kind'],
    ['a field of what is no JSON', Buffer.from('hi'), { typeFrom: 'kind' }, 'line 4 is no JSON'],
  ])('refused with where and why: %s', (_name, value, options, message) => {
    const attempt = () => eventRecord(value, { ...base, ...options }, 0, false, 'line 4')
    expect(attempt).toThrow(HooktideError)
    expect(attempt).toThrow(message)
  })
})

test('lines come whole across chunks, with their numbers, without line ends and empty lines', async () => {
  async function* chunks() {
    for (const text of ['a\r\nb', 'b\n\n', 'c', 'c\nd']) yield Buffer.from(text)
  }
  const lines: string[] = []
  for await (const { number, line } of readLines(chunks())) lines.push(`${number} ${line}`)
  expect(lines).toEqual(['1 a', '2 bb', '4 cc', '5 d'])
})

describe('produce on a real broker', () => {
  let env: Record<string, string>
  beforeAll(async () => {
    env = await ownWorld()
  })

  async function events(): Promise<string[]> {
    const reader = (await testKafka()).reader()
    const found: string[] = []
    for await (const { record } of readTopic(reader, env.HOOKTIDE_TOPICS_EVENTS as string)) {
      found.push(`${record.headers['event-type'] ?? '-'} ${record.key ?? '-'} ${record.value}`)
    }
    return found.sort()
  }

  test('one event from the command line, NDJSON from a file, one envelope from stdin: all acknowledged, where they are is said', async () => {
    const topic = env.HOOKTIDE_TOPICS_EVENTS as string
    const one = await hooktide(['produce', '--type', 'a', '--key', 'k', '--data', '1'], { env })
    expect(one).toEqual({ code: 0, out: expect.stringMatching(new RegExp(`^${topic}/\\d+ offset 0\n$`)), err: '' })

    const folder = await mkdtemp(join(tmpdir(), 'hooktide-test-'))
    atEnd(() => rm(folder, { recursive: true }))
    const file = join(folder, 'events.ndjson')
    await writeFile(file, '{"kind":"x","n":1}\n\n{"kind":"y","n":2}\n')
    const many = await hooktide(['produce', '--ndjson', '--type-from', 'kind', '--count', '3', '--json', file], { env })
    expect(JSON.parse(many.out)).toMatchObject({ topic, events: 3 })

    const piped = await hooktide(['produce', '-'], { env, input: '{"type":"z","key":"k"}' })
    expect(piped.code).toBe(0)
    expect(await events()).toEqual([
      '- k {"type":"z","key":"k"}',
      'a k 1',
      'x - {"kind":"x","n":1}',
      'x - {"kind":"x","n":1}',
      'y - {"kind":"y","n":2}',
    ])
  })

  test('a bad line is named; the lines before it are written, none after it', async () => {
    const before = (await events()).length
    const input = '{"type":"ok"}\n{"type":"not ok"}\n{"type":"ok"}\n'
    const { code, err } = await hooktide(['produce', '--ndjson'], { env, input })
    expect(code).toBe(2)
    expect(err).toContain('error: line 2 would be rejected: type "not ok" is malformed')
    expect(err).toContain('\n  1 event before it was written\n')
    expect((await events()).length - before).toBe(1)
  })

  test('--rate spreads events over time', async () => {
    const args = ['produce', '--type', 'r', '--data', '{}', '--count', '21', '--rate', '100', '--json']
    const { events: written, elapsedMs } = JSON.parse((await hooktide(args, { env })).out)
    expect(written).toBe(21)
    expect(elapsedMs).toBeGreaterThanOrEqual(200)
  })

  test('an empty body is refused unless it is meant; no lines are no events', async () => {
    const before = (await events()).length
    const produce = (args: string[], input = '') => hooktide(['produce', ...args], { env, input })
    const none = {
      code: 2,
      out: '',
      err: expect.stringContaining('is empty: nothing was written\nGive --empty for an'),
    }
    expect(await produce(['--type', 'a'])).toEqual(none)
    expect(await produce(['--type', 'a', '--data', ''])).toEqual(none)
    const lines = { code: 2, out: '', err: 'error: 0 events: stdin holds no line\nWrite one event per line.\n' }
    expect(await produce(['--type', 'a', '--ndjson'], '\n\n')).toEqual(lines)
    expect((await events()).length - before).toBe(0)
    expect(await produce(['--type', 'on.purpose', '--empty'], 'not read')).toMatchObject({ code: 0, err: '' })
    expect((await events()).filter((event) => event.startsWith('on.purpose'))).toEqual(['on.purpose - '])
  })

  test('a topic that is not there is named with the remedy', async () => {
    const { code, err } = await hooktide(['produce', '--type', 'a', '--data', '1', '--topic', 'nowhere'], { env })
    expect(code).toBe(1)
    expect(err).toContain('error: topic nowhere does not exist\nRun `hooktide topics apply`')
  })
})
