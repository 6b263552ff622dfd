import { describe, expect, it } from 'vitest'
import { HooktideError } from '../../src/core/error.ts'
import { isFenced, isTooLarge, translate, troubleOf } from '../../src/kafka/errors.ts'
import { library } from '../../src/kafka/load.ts'

const code = (n: number) => library.createErrorFromCode(n)
const named = (name: string, more: object = {}) => Object.assign(new Error('said the client'), { name, ...more })

describe('errors of Kafka become ours', () => {
  it.each([
    [29, { operation: 'produce', topic: 'orders' }, 'broker.unauthorized', 'WRITE and DESCRIBE on topic orders'],
    [29, { operation: 'fetch', topic: 'orders' }, 'broker.unauthorized', 'READ and DESCRIBE on topic orders'],
    [30, { operation: 'commit', group: 'g' }, 'broker.unauthorized', 'READ on group g'],
    [
      53,
      { operation: 'commit a transaction', transactionalId: 'lane-1' },
      'broker.unauthorized',
      'WRITE and DESCRIBE on transactional id lane-1',
    ],
    [31, { operation: 'produce' }, 'broker.unauthorized', 'IDEMPOTENT_WRITE on the cluster'],
    [3, { operation: 'produce', topic: 'orders' }, 'topic.missing', 'hooktide topics apply'],
    [10, { operation: 'produce', topic: 'orders' }, 'record.too-large', 'max.message.bytes'],
    [35, { operation: 'fetch' }, 'broker.incompatible', '2.5'],
    [6, { operation: 'fetch' }, 'broker.unavailable', 'advertised'],
    [58, { operation: 'fetch' }, 'broker.unauthenticated', 'kafka.sasl'],
  ] as const)('error code %i while %o', (n, doing, expected, remedy) => {
    const error = translate(code(n), doing)
    expect(error.code).toBe(expected)
    expect(error.remedy).toContain(remedy)
  })

  it.each([
    [47, 'producer.fenced'],
    [48, 'internal'],
  ] as const)('error code %i', (n, expected) => {
    expect(translate(code(n), { operation: 'commit a transaction', transactionalId: 'lane-1' })).toMatchObject({
      code: expected,
      message: expect.stringContaining('lane-1'),
    })
  })

  it.each([
    ['KafkaJSSASLAuthenticationError', {}, 'broker.unauthenticated'],
    ['KafkaJSConnectionError', { code: 'SELF_SIGNED_CERT_IN_CHAIN' }, 'broker.unauthenticated'],
    ['KafkaJSConnectionError', { code: 'ECONNREFUSED' }, 'broker.unavailable'],
    ['KafkaJSRequestTimeoutError', {}, 'broker.unavailable'],
    ['TypeError', {}, 'internal'],
  ] as const)('%s %o', (name, more, expected) => {
    expect(translate(named(name, more), { operation: 'fetch' }).code).toBe(expected)
  })

  it('passes our own through', () => {
    const own = new HooktideError('producer.closed', 'x')
    expect(translate(own, { operation: 'fetch' })).toBe(own)
  })

  it.each([
    [51, 'concurrent'],
    [6, 'stale'],
    [16, 'stale'],
    [14, 'stale'],
    [19, 'later'],
    [29, 'fatal'],
    [45, 'fatal'],
    [47, 'fatal'],
  ] as const)('a retry loop takes code %i as %s', (n, expected) => {
    expect(troubleOf(code(n))).toBe(expected)
  })

  it('tells fenced and too large apart', () => {
    expect([
      isFenced(code(47)),
      isFenced(code(10)),
      isTooLarge(code(10)),
      isTooLarge(code(18)),
      isTooLarge(code(47)),
    ]).toEqual([true, false, true, true, false])
  })
})
