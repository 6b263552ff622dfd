import { expect, test } from 'vitest'
import { guardPolicy } from '../../src/core/guard-policy.ts'
import { checkEndpoint } from '../../src/http/check-endpoint.ts'
import { Resolver } from '../../src/http/resolver.ts'
import { realClock } from '../support/clock.ts'

const made = guardPolicy({ allowHttp: true })
if (!made.ok) throw new Error(made.reason)
const policy = made.value
const hosts = new Map([
  ['good.example', ['93.184.215.14', '1.1.1.1']],
  ['mixed.example', ['93.184.215.14', '10.0.0.5']],
])
const resolver = new Resolver({
  clock: realClock,
  hosts,
  query: () => Promise.reject(Object.assign(new Error('x'), { code: 'ENOTFOUND' })),
})

test.each([
  ['https://good.example/', true, 'good.example resolves to 93.184.215.14, 1.1.1.1', [null, null]],
  [
    'https://mixed.example/',
    false,
    'mixed.example resolves to 10.0.0.5: private (10.0.0.0/8)',
    [null, 'private (10.0.0.0/8)'],
  ],
  ['https://1.1.1.1/', true, 'address 1.1.1.1 may be dialled', [null]],
  ['https://127.1/', false, 'address 127.0.0.1 is not allowed: loopback (127.0.0.0/8)', []],
  ['https://gone.example/', false, 'ENOTFOUND for gone.example', []],
  ['mailto:x', false, 'the URL must begin with https:// (or http://) and a host', []],
])('%s: allowed %s', async (url, allowed, reason, refusals) => {
  const check = await checkEndpoint(url, policy, resolver)
  expect([check.allowed, check.reason]).toEqual([allowed, reason])
  expect(check.addresses.map((each) => each.refusal)).toEqual(refusals)
})

test.each([
  ['http://good.example/', {}, ['http.allowHttp: true']],
  ['https://127.0.0.1/', {}, ['http.allowPrivate: ["127.0.0.1"]']],
  ['http://127.0.0.1/', {}, ['http.allowHttp: true and http.allowPrivate: ["127.0.0.1"]']],
  ['https://mixed.example/', {}, ['http.allowPrivate: ["mixed.example"]', 'http.allowPrivate: ["10.0.0.5"]']],
  ['https://169.254.169.254/', {}, ['http.allowMetadata: true (it hands out credentials: for tests of it only)']],
  ['https://[64:ff9b::5db8:d70e]/', {}, ['http.allowPrivate: ["64:ff9b::5db8:d70e"]', 'http.allowNat64: true']],
  ['https://good.example/', { deny: ['1.1.1.1'] }, ['taking it out of http.deny']],
  ['https://good.example:22/', {}, []],
])('what would let %s through under %o is found by trying', async (url, settings, remedies) => {
  const strict = guardPolicy(settings)
  if (!strict.ok) throw new Error(strict.reason)
  expect((await checkEndpoint(url, strict.value, resolver)).remedies).toEqual(remedies)
})

test('a name that nobody answers for is unknown, not refused by a rule', async () => {
  expect(await checkEndpoint('https://gone.example/', policy, resolver)).toMatchObject({
    allowed: false,
    decided: false,
    remedies: [],
  })
})
