import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { redact, redactFields } from '../../src/observe/redact.ts'

describe('redaction', () => {
  it.each([
    ['POST https://user:hunter2@host.test/hook failed', 'POST https://host.test/hook failed'],
    ['https://host.test/hook?key=hunter2#hunter2', 'https://host.test/hook'],
    ['two: http://a.test/?q=hunter2, http://u:hunter2@b.test/x', 'two: http://a.test/ http://b.test/x'],
    ['not parsable http://u:hun?ter2@h:99999999/p?q=hunter2', 'not parsable http://***@h:99999999/p'],
    ['secret whsec_aHVudGVyMg== and whsk_aHVudGVyMg', 'secret whsec_*** and whsk_***'],
    ['public whpk_abc stays', 'public whpk_abc stays'],
    ['Authorization: Bearer hunter2.a-b_c', 'Authorization: Bearer ***'],
    ['authorization: basic aHVudGVyMjpodW50ZXIy', 'authorization: basic ***'],
    ['a=1&access_token=hunter2&b=2', 'a=1&access_token=***&b=2'],
    ['client_secret=hunter2; api-key=hunter2', 'client_secret=***; api-key=***'],
    ['{"password":"hun\\"ter2","n":1}', '{"password":"***","n":1}'],
    ['-----BEGIN EC PRIVATE KEY-----\nhunter2\n-----END EC PRIVATE KEY-----!', '***!'],
    ['-----BEGIN PRIVATE KEY-----\nhunter2 cut off', '***'],
    ['partition 3 of deliveries/3 at 17', 'partition 3 of deliveries/3 at 17'],
  ])('%s', (text, clean) => {
    expect(redact(text)).toBe(clean)
  })

  it('never lets a URL’s credentials, query or fragment through, whatever stands around it', () => {
    const secret = 'Hunter2Hunter2'
    const word = fc.stringMatching(/^[a-z0-9 ,;:()[\]]{0,20}$/)
    const url = fc.constantFrom(
      `https://u:${secret}@h.test/p`,
      `http://${secret}@h.test`,
      `https://h.test/p?a=${secret}`,
      `https://h.test#${secret}`,
      `https://h.test:99999/p?x=${secret}`,
      `kafka://u:${secret}@h/p@q`,
      `https://u:p${secret}/x@h.test/`,
    )
    fc.assert(
      fc.property(word, url, word, (before, found, after) => {
        expect(redact(`${before} ${found} ${after}`)).not.toContain(secret)
      }),
    )
  })

  it('never lets a signing secret or a bearer token through', () => {
    const secret = fc.stringMatching(/^[A-Za-z0-9+/]{8,44}={0,2}$/)
    fc.assert(
      fc.property(
        fc.constantFrom('whsec_', 'whsk_', 'Bearer ', 'bearer  '),
        secret,
        fc.string(),
        (prefix, key, after) => {
          expect(redact(`x ${prefix}${key} ${after}`)).not.toContain(`${prefix}${key}`)
        },
      ),
    )
  })

  it('masks fields by name, keeps numbers and null, drops undefined, cuts what is endless', () => {
    const clean = redactFields({
      authorization: 'x',
      api_key: 'y',
      refresh_token: 'z',
      n: 3,
      none: null,
      gone: undefined,
      long: 'l'.repeat(9999),
    })
    expect(clean).toMatchObject({ authorization: '***', api_key: '***', refresh_token: '***', n: 3, none: null })
    expect(Object.keys(clean)).not.toContain('gone')
    expect(String(clean.long).length).toBe(4097)
  })
})
