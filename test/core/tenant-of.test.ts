import { expect, test } from 'vitest'
import { tenantOf } from '../../src/operations/tenant-of.ts'

const acme = { by: 'a', tenant: 'acme' }
const operator = { by: 'o', tenant: null }

test('who is bound to a tenant gets that one and may name no other; who is not gets whom they name', () => {
  expect(tenantOf(acme, undefined)).toBe('acme')
  expect(tenantOf(acme, 'acme')).toBe('acme')
  expect(() => tenantOf(acme, 'globex')).toThrow(expect.objectContaining({ code: 'forbidden' }))
  expect(tenantOf(operator, 'globex')).toBe('globex')
  expect(tenantOf(operator, undefined)).toBeUndefined()
})
