import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { HmacSha256 } from '../../src/core/hmac.ts'

function reference(key: Uint8Array, parts: readonly (Buffer | string)[]): string {
  const hmac = createHmac('sha256', key)
  for (const part of parts) hmac.update(part)
  return hmac.digest('base64')
}

test('is the HMAC-SHA256 of node, for any key and parts', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 200 }),
      fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.uint8Array({ maxLength: 3000 })), { maxLength: 4 }),
      (key, raw) => {
        const parts = raw.map((part) => (typeof part === 'string' ? part : Buffer.from(part)))
        expect(new HmacSha256(Buffer.from(key)).base64(parts)).toBe(reference(key, parts))
      },
    ),
  )
})

test.each([0, 1, 65_535, 65_536, 65_537, 300_000])('is so for %i bytes, around the bound of one shot', (bytes) => {
  const key = Buffer.alloc(32, 7)
  const body = Buffer.alloc(bytes, 'b')
  expect(new HmacSha256(key).base64(['', body])).toBe(reference(key, ['', body]))
  expect(new HmacSha256(key).base64(['id.1.', body])).toBe(reference(key, ['id.1.', body]))
})

test('keys do not mix, and printing one shows nothing of it', async () => {
  const { inspect } = await import('node:util')
  const [a, b] = [Buffer.alloc(32, 'A'), Buffer.alloc(32, 'B')]
  const [first, second] = [new HmacSha256(a), new HmacSha256(b)]
  expect([first.base64(['x']), second.base64(['x']), first.base64(['x'])]).toEqual([
    reference(a, ['x']),
    reference(b, ['x']),
    reference(a, ['x']),
  ])
  expect(inspect(first, { depth: 5, showHidden: true })).not.toMatch(/41 41|77 77|AAAA/)
})
