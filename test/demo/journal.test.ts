import { expect, test } from 'vitest'
import { signatureProblemOf } from '../../src/demo/journal.ts'
import { signed } from './run.ts'

const key = Buffer.alloc(32, 7)
const secret = `whsec_${key.toString('base64')}`
const body = Buffer.from('{"a":1}')
const good = signed(key, 'msg_1', 1000, body)

test.each([
  ['the right one', good, body, 1_000_000, null],
  ['one of several', { ...good, 'webhook-signature': `v1,AAAA ${good['webhook-signature']}` }, body, 1_000_000, null],
  ['none', {}, body, 1_000_000, 'unsigned'],
  ['of another body', good, Buffer.from('{"a":2}'), 1_000_000, 'no signature matches'],
  ['of another id', { ...good, 'webhook-id': 'msg_2' }, body, 1_000_000, 'no signature matches'],
  ['with another secret', signed(Buffer.alloc(32, 8), 'msg_1', 1000, body), body, 1_000_000, 'no signature matches'],
  ['cut short', { ...good, 'webhook-signature': 'v1,' }, body, 1_000_000, 'no signature matches'],
  ['too old', good, body, 1_301_000, 'timestamp 1000 is out of range'],
])('signature: %s', (_what, headers, received, nowMs, problem) => {
  expect(signatureProblemOf(secret, headers, received, nowMs)).toBe(problem)
})
