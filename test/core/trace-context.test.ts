import { expect, test } from 'vitest'
import { formatTraceparent, parseTraceparent, randomHex } from '../../src/core/trace-context.ts'

const [trace, span] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331']

test.each([
  ['sampled', `00-${trace}-${span}-01`, { traceId: trace, spanId: span, sampled: true }],
  ['not sampled', `00-${trace}-${span}-00`, { traceId: trace, spanId: span, sampled: false }],
  ['other flags', `00-${trace}-${span}-03`, { traceId: trace, spanId: span, sampled: true }],
  ['a later version, with more', `01-${trace}-${span}-01-what`, { traceId: trace, spanId: span, sampled: true }],
  ['version 00 with more', `00-${trace}-${span}-01-what`, null],
  ['version ff', `ff-${trace}-${span}-01`, null],
  ['no trace id', `00-${'0'.repeat(32)}-${span}-01`, null],
  ['no span id', `00-${trace}-${'0'.repeat(16)}-01`, null],
  ['capitals', `00-${trace.toUpperCase()}-${span}-01`, null],
  ['nonsense', 'x', null],
])('traceparent: %s', (_, text, expected) => expect(parseTraceparent(text)).toEqual(expected))

test('what is written is read again', () => {
  const context = { traceId: trace, spanId: span, sampled: false }
  expect(parseTraceparent(formatTraceparent(context))).toEqual(context)
})

test('an id is of its length and never all zero', () => {
  expect(randomHex(8, () => 0)).toBe('0000000000000001')
  expect(randomHex(16, () => 0.999)).toBe('ff'.repeat(16))
})
