import fc from 'fast-check'
import { expect, test } from 'vitest'
import { guardPolicy } from '../../src/core/guard-policy.ts'
import { checkUrl } from '../../src/core/url-rules.ts'

const open = guardPolicy({ allowHttp: true, allowPrivate: ['localhost', '*.svc.cluster.local', '127.0.0.0/8'] })
const plain = guardPolicy({ allowHttp: true })
if (!open.ok || !plain.ok) throw new Error('policy')
const [relaxed, strict] = [open.value, plain.value]

test.each([
  [
    'https://Example.COM./a?b=c#frag',
    {
      href: 'https://example.com/a?b=c',
      origin: 'https://example.com',
      hostname: 'example.com',
      port: 443,
      path: '/a?b=c',
      secure: true,
      literal: false,
    },
  ],
  [
    'http://1.1.1.1:8080',
    {
      href: 'http://1.1.1.1:8080/',
      origin: 'http://1.1.1.1:8080',
      hostname: '1.1.1.1',
      port: 8080,
      path: '/',
      secure: false,
      literal: true,
    },
  ],
  ['https://[2606:4700::1]/', { origin: 'https://[2606:4700::1]', hostname: '2606:4700::1', literal: true }],
  ['https://münchen.example/ü', { hostname: 'xn--mnchen-3ya.example', path: '/%C3%BC' }],
])('%s is taken apart', (text, parts) => {
  const target = checkUrl(text, strict)
  expect(target).toMatchObject({ ok: true, value: parts })
})

test.each([
  ['', /empty/],
  [`https://example.com/${'a'.repeat(2048)}`, /2068 characters/],
  ['https://example.com/a b', /a space at position 21/],
  ['https://exam\u00adple.com/', /U\+00AD/],
  ['https://example.com\\@x', /backslash/],
  ['https://example.com/\ud800', /surrogate/],
  ['ftp://example.com/', /must begin/],
  ['https:/example.com', /must begin/],
  ['https://@example.com/', /credentials/],
  ['https://u:p@example.com/', /credentials/],
  ['https://example.com:99999/', /does not parse/],
  ['https://example.com:0/', /port 0/],
  ['https://example.com:25/', /port 25/],
  ['https://127.1/', /loopback/],
  ['https://a..b.com/', /empty label/],
  ['https://./', /no host|empty label/],
  [`https://${'a'.repeat(64)}.com/`, /longer than 63/],
  ['https://kafka/', /single label/],
  ['https://printer.local/', /internal \(\.local\)/],
  ['https://api.default.svc.cluster.local/', /internal/],
])('%j is refused with a reason that names what is wrong', (text, reason) => {
  const target = checkUrl(text, strict)
  expect(target.ok).toBe(false)
  expect(target.ok ? '' : target.reason).toMatch(reason)
})

test('plain http needs its switch', () => {
  const httpsOnly = guardPolicy({})
  expect(httpsOnly.ok && checkUrl('http://example.com/', httpsOnly.value)).toMatchObject({
    ok: false,
    reason: 'plain http is not allowed here; use https',
  })
})

test('operators can list names and blocks', () => {
  for (const url of ['http://localhost:8080/', 'http://api.default.svc.cluster.local/', 'http://127.0.0.1:3000/'])
    expect(checkUrl(url, relaxed).ok, url).toBe(true)
  for (const url of ['http://foo.localhost/', 'http://svc.cluster.local.evil.local/', 'http://10.0.0.1/'])
    expect(checkUrl(url, relaxed).ok, url).toBe(false)
})

test('any text gets a verdict, never an exception, and what passes is stable', () => {
  const pieces = fc.constantFrom(
    'http://',
    'https://',
    'a',
    '.',
    ':',
    '@',
    '[',
    ']',
    '%',
    '0x7f',
    '127',
    '/',
    '?',
    '#',
    '\\',
    'xn--',
    '\u0000',
    'é',
    '。',
    '80',
    'com',
  )
  fc.assert(
    fc.property(
      fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join('')),
      (text) => {
        const first = checkUrl(text, strict)
        if (first.ok) expect(checkUrl(first.value.href, strict)).toEqual(first)
      },
    ),
    { numRuns: 3000 },
  )
})
