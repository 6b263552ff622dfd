import { expect, test } from 'vitest'
import { checkCustomHeaders } from '../../src/core/custom-headers.ts'

test.each([
  [{ Host: 'x' }, /Host.*set by Hooktide/],
  [{ connection: 'upgrade' }, /connection/],
  [{ 'Transfer-Encoding': 'chunked' }, /Transfer-Encoding/],
  [{ 'content-length': '5' }, /content-length/],
  [{ 'Webhook-Id': 'x' }, /reserved \(webhook-\*\)/],
  [{ 'Proxy-Authorization': 'x' }, /reserved \(proxy-\*\)/],
  [{ 'x-aws-ec2-metadata-token': 'x' }, /reserved/],
  [{ Metadata: 'true' }, /Metadata/],
  [{ 'x a': '1' }, /character/],
  [{ ':authority': '1' }, /character/],
  [{ '': '1' }, /character/],
  [{ 'x-a': '1\r\nHost: y' }, /control/],
  [{ 'x-a': 'a\0b' }, /control/],
  [{ 'x-a': 'é' }, /non-ASCII/],
  [{ 'x-a': ' padded' }, /value/],
  [{ 'x-a': 1 }, /text value/],
  [{ 'X-A': '1', 'x-a': '2' }, /twice/],
  [{ 'x-a': 'v'.repeat(9000) }, /8192/],
  [Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`x-${i}`, 'v'])), /33 headers/],
  ['text', /object/],
  [['x'], /object/],
  [null, /object/],
])('%j is refused with the name of the header', (headers, reason) => {
  const check = checkCustomHeaders(headers)
  expect(check.ok ? '' : check.reason).toMatch(reason)
})

test('ordinary headers pass, with names like those of Object.prototype', () => {
  const headers = { authorization: 'Bearer x', 'X-Api-Key': 'k', constructor: 'v', 'x-empty': '' }
  expect(checkCustomHeaders(headers)).toEqual({ ok: true, value: headers })
})

test('all problems are named at once', () => {
  const check = checkCustomHeaders({ host: 'x', te: 'y' })
  expect(check.ok ? '' : check.reason).toMatch(/host.*; .*te/)
})
