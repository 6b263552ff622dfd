import { afterAll, beforeAll, expect, test } from 'vitest'
import { claimFor } from '../../src/core/claim.ts'
import { Secret } from '../../src/core/secret.ts'
import { S3Store } from '../../src/objects/s3-store.ts'
import { realClock } from '../support/clock.ts'
import { noS3, s3Server } from '../support/s3.ts'

let endpoint = ''
let stop = (): void => undefined
const secret = new Secret('test')
const store = (bucket: string, at = endpoint) =>
  new S3Store({
    bucket,
    prefix: 'claims/',
    region: 'us-east-1',
    endpoint: at,
    accessKeyId: secret,
    secretAccessKey: secret,
    timeoutMs: 3_000,
    clock: realClock,
  })

beforeAll(async () => {
  if (noS3 === null) ({ endpoint, stop } = await s3Server('bodies'))
}, 60_000)
afterAll(() => stop())

const body = Buffer.from('x'.repeat(600_000))
const claim = claimFor(body, 0)

test.skipIf(noS3 !== null)('what is put comes back', async () => {
  await store('bodies').put(claim, body)
  const got = await store('bodies').get(claim)
  expect(got.t === 'found' && got.body.equals(body)).toBe(true)
})

test.skipIf(noS3 !== null)('no object is missing; another size or digest is refused', async () => {
  const bodies = store('bodies')
  expect(await bodies.get({ ...claim, key: 'not/there' })).toEqual({ t: 'missing' })
  expect(await bodies.get({ ...claim, key: '../bodies' })).toMatchObject({ t: 'bad' })
  const other = { ...claim, key: 'other' }
  await bodies.put(other, Buffer.from('y'.repeat(600_000)))
  expect(await bodies.get(other)).toMatchObject({ t: 'bad', detail: expect.stringMatching(/digest/) })
  await bodies.put(other, Buffer.from('y'))
  expect(await bodies.get(other)).toMatchObject({ t: 'bad', detail: expect.stringMatching(/1 bytes, claimed/) })
})

test.skipIf(noS3 !== null)('a bucket that is missing and a server that is away are no missing object', async () => {
  expect(await store('no-such-bucket').get(claim)).toMatchObject({ t: 'unavailable' })
  expect(await store('bodies', 'http://127.0.0.1:1').get(claim)).toMatchObject({ t: 'unavailable' })
})

test.skipIf(noS3 !== null)('days are removed as a whole, up to a time; other keys stay', async () => {
  const bodies = store('bodies')
  const at = [1, 2, 3].map((n) => claimFor(body, n * 86_400_000))
  for (const one of at) await bodies.put(one, body)
  const own = { ...claim, key: 'reports/one' }
  await bodies.put(own, body)
  const days = ['1970-01-01', '1970-01-02', '1970-01-03']
  expect(await bodies.removeBefore(3 * 86_400_000, true)).toEqual(days)
  expect((await bodies.get(at[1] as typeof claim)).t).toBe('found')
  expect(await bodies.removeBefore(3 * 86_400_000, false)).toEqual(days)
  const left = await Promise.all([...at, own].map(async (one) => (await bodies.get(one)).t))
  expect(left).toEqual(['missing', 'missing', 'found', 'found'])
  expect(await bodies.remove(own.key)).toBe(true)
  expect((await bodies.get(own)).t).toBe('missing')
})
