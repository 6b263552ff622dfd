import { expect, test } from 'vitest'
import { suggest } from '../../src/core/suggest.ts'

test.each([
  ['broker', 'brokers'],
  ['Brokers', 'brokers'],
  ['bokers', 'brokers'],
  ['client_id', 'clientId'],
  ['password', null],
  ['', null],
])('%j → %j', (written, meant) => {
  expect(suggest(written, ['brokers', 'clientId', 'sessionTimeout'])).toBe(meant)
})
