import { Command } from 'commander'
import { expect, test } from 'vitest'
import { unsetFields } from '../../src/cli/endpoint-options.ts'
import { type FieldOptions, fieldsOf, withFieldOptions } from '../../src/cli/subscription-fields.ts'
import { endpointRefs } from '../../src/core/endpoint-settings.ts'
import { validateSubscriptionInput } from '../../src/schema/subscription-input.ts'

function fields(line: string): Record<string, unknown> {
  const command = withFieldOptions(new Command()).exitOverride()
  command.parse(line === '' ? [] : line.split(' '), { from: 'user' })
  return fieldsOf(command.opts<FieldOptions>())
}

test.each([
  ['--basic-user ann --basic-password env:P', { auth: { basic: { username: 'ann', passwordRef: 'env:P' } } }],
  ['--bearer-token file:t', { auth: { bearer: { tokenRef: 'file:t' } } }],
  [
    '--oauth2-url https://id.test/token --oauth2-client c --oauth2-secret kafka:s --oauth2-scope hooks',
    {
      auth: {
        oauth2: { tokenUrl: 'https://id.test/token', clientId: 'c', clientSecretRef: 'kafka:s', scope: 'hooks' },
      },
    },
  ],
  [
    '--tls-cert file:c --tls-key file:k --tls-ca file:a',
    { tls: { certRef: 'file:c', keyRef: 'file:k', caRef: 'file:a' } },
  ],
  ['--content-type application/xml', { contentType: 'application/xml' }],
  [
    '--legacy-signature X-Hub-Signature-256 --legacy-format base64',
    { legacySignature: { header: 'X-Hub-Signature-256', format: 'base64' } },
  ],
  ['--rate 2.5 --burst 3', { rateLimit: { perSecond: 2.5, burst: 3 } }],
  ['', {}],
])('%s', (line, expected) => {
  expect(fields(line)).toEqual(expected)
})

const nowMs = 0
const base = { id: 'a', url: 'https://example.com/', secrets: [{ ref: 'env:A' }] }

test.each([
  [{ auth: {} }, ['auth (an object): is empty; give one']],
  [
    { auth: { bearer: { tokenRef: 'env:A' }, basic: { username: 'a', passwordRef: 'env:B' } } },
    ['auth (an object): is too long; at most 1'],
  ],
  [
    { auth: { bearer: { tokenRef: 'the-token-itself' } } },
    [
      'auth.bearer.tokenRef (***): is malformed; must be a reference: env:NAME, file:PATH or kafka:ID, never the secret itself',
    ],
  ],
  [{ auth: { bearer: { token: 'x' } } }, ['auth.bearer.token: is not a known key; remove it']],
  [
    { auth: { oauth2: { tokenUrl: 'https://10.0.0.1/t', clientId: 'c', clientSecretRef: 'env:S' } } },
    ['auth.oauth2.tokenUrl: address 10.0.0.1 is not allowed: private (10.0.0.0/8); give a public https:// URL'],
  ],
  [
    { auth: { bearer: { tokenRef: 'env:T' } }, headers: { Authorization: 'x' } },
    ['headers.authorization: is set by auth as well; keep one of them'],
  ],
  [{ tls: { certRef: 'file:c' } }, ['tls.keyRef: is missing; add it']],
  [{ contentType: 'json' }, ['contentType: is no media type; e.g. application/json; charset=utf-8']],
  [{ rateLimit: { perSecond: 0 } }, ['rateLimit.perSecond (0): is out of range; must be >= 0.001']],
  [{ rateLimit: { perSecond: 1, burst: 61 } }, ['rateLimit.burst: is more than a minute of perSecond; lower it']],
  [
    { legacySignature: { header: 'webhook-signature' } },
    [
      'legacySignature.header: header "webhook-signature" is reserved (webhook-*); use another, e.g. X-Hub-Signature-256',
    ],
  ],
  [
    { legacySignature: { header: 'Host' } },
    [expect.stringContaining('"Host" is set by Hooktide or by the connection')],
  ],
  [
    { legacySignature: { header: 'X-Sig' }, headers: { 'x-sig': 'a' } },
    ['legacySignature.header: is among headers as well; keep one of them'],
  ],
  [{ legacySignature: { header: 'X-Sig', prefix: 'a\r\nb' } }, [expect.stringContaining('legacySignature.prefix')]],
])('%o is refused with field, reason and remedy', (more, messages) => {
  const checked = validateSubscriptionInput({ ...base, ...more }, { nowMs })
  const found = checked.ok
    ? []
    : checked.problems
        .filter(({ message }) => message !== 'is missing' || !('auth' in more))
        .map((p) => `${p.field}${p.value === '' ? '' : ` (${p.value})`}: ${p.message}; ${p.remedy}`)
  expect(found).toEqual(messages)
})

test('--unset takes away known fields only, and none that is given', () => {
  expect(unsetFields({ unset: ['auth', 'rateLimit'] }, {})).toEqual(['auth', 'rateLimit'])
  expect(() => unsetFields({ unset: ['url'] }, {})).toThrow(/no such field/)
  expect(() => unsetFields({ unset: ['auth'] }, { auth: {} })).toThrow(/both given/)
})

test('every reference among the settings is known to whoever checks them', () => {
  const ref = (name: string) => `env:${name}`
  const tls = { certRef: ref('C'), keyRef: ref('K'), caRef: ref('A') }
  const legacySignature = { header: 'X-Sig', secretRef: ref('L') }
  const rest = ['env:C', 'env:K', 'env:A', 'env:L']
  const auths = [
    { basic: { username: 'u', passwordRef: ref('X') } },
    { bearer: { tokenRef: ref('X') } },
    { oauth2: { tokenUrl: 'https://id.test/', clientId: 'c', clientSecretRef: ref('X') } },
  ]
  for (const auth of auths) expect(endpointRefs({ auth, tls, legacySignature })).toEqual(['env:X', ...rest])
  expect(endpointRefs({ contentType: 'text/plain' })).toEqual([])
})
