import { randomBytes } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { readTopic } from '../../src/operations/read-topic.ts'
import { clusterOf, hooktide, ownWorld } from './support.ts'

const key = (id: string) => `${id}:${randomBytes(32).toString('base64')}`
const k1 = key('k1')
const k2 = key('k2')
const token = 'tok-5f0c-very-private'
let env: Record<string, string>
beforeAll(async () => {
  env = { ...(await ownWorld()), HOOKTIDE_SECRETS_MASTER_KEY_REF: 'env:MASTER', MASTER: k1 }
})

const list = async (more: Record<string, string> = {}) =>
  JSON.parse((await hooktide(['secrets', 'list', '--json'], { env: { ...env, ...more } })).out)

test('a text is sealed, listed with who uses it, replaced by its next version, sealed anew, and removed; it is nowhere in clear', async () => {
  const put = await hooktide(['secrets', 'put', 'acme-token'], { env, input: `${token}\n` })
  expect([put.code, put.err]).toEqual([0, ''])
  await hooktide(['secrets', 'put', 'acme-token'], { env, input: `${token}-2\n` })
  const added = await hooktide(
    [
      'subscriptions',
      'add',
      '--id',
      'acme',
      '--url',
      'https://example.com',
      '--secret',
      'kafka:new',
      '--bearer-token',
      'kafka:acme-token',
    ],
    { env },
  )
  expect(added.code).toBe(0)
  expect(await list()).toMatchObject([
    { id: 'acme-token', version: 2, keyId: 'k1', problem: null, usedBy: ['acme'] },
    { id: 'acme.1', version: 1, keyId: 'k1', problem: null, usedBy: ['acme'] },
  ])

  // The new key stands in front, the old one behind it until all is sealed anew; then it can go.
  const both = { MASTER: `${k2} ${k1}` }
  expect((await hooktide(['secrets', 'rekey'], { env: { ...env, ...both } })).out).toContain('2 secrets sealed anew')
  expect((await hooktide(['secrets', 'rekey', '--json'], { env: { ...env, ...both } })).out).toContain('"rekeyed": []')
  expect(await list({ MASTER: k2 })).toMatchObject([
    { id: 'acme-token', version: 3, keyId: 'k2', problem: null },
    { id: 'acme.1', version: 2, keyId: 'k2', problem: null },
  ])
  expect((await list())[0].problem).toContain('k2')

  const refused = await hooktide(['secrets', 'remove', 'acme-token'], { env })
  expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('used by acme')])
  expect((await hooktide(['secrets', 'remove', 'acme-token', '--force'], { env })).code).toBe(0)
  expect((await list({ MASTER: k2 })).map(({ id }: { id: string }) => id)).toEqual(['acme.1'])

  const cluster = clusterOf(env)
  const reader = cluster.kafka.reader()
  try {
    for await (const { record } of readTopic(reader, `${env.HOOKTIDE_TOPICS_PREFIX}secrets`))
      expect(`${record.value}`).not.toContain(token)
  } finally {
    await reader.close()
    await cluster.close()
  }
}, 60_000)

test('what can not be sealed is said, with the remedy', async () => {
  const empty = await hooktide(['secrets', 'put', 'x'], { env, input: '\n' })
  expect([empty.code, empty.err]).toEqual([2, expect.stringContaining('nothing on stdin')])
  const id = await hooktide(['secrets', 'put', 'a:b'], { env, input: 'x' })
  expect([id.code, id.err]).toEqual([2, expect.stringContaining('"a:b" can not be the id')])
  const { MASTER: _, ...keyless } = env
  const none = await hooktide(['secrets', 'put', 'x'], { env: keyless, input: 'x' })
  expect([none.code, none.err]).toEqual([1, expect.stringContaining('secrets.masterKeyRef')])
  const missing = await hooktide(['secrets', 'remove', 'nope'], { env })
  expect([missing.code, missing.err]).toEqual([1, expect.stringContaining('no secret nope')])
})
