import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { hooktide, ownWorld } from './support.ts'

let env: Record<string, string>
beforeAll(async () => {
  env = await ownWorld({
    HOOKTIDE_SECRETS_MASTER_KEY_REF: 'env:MASTER',
    ...{ A: 'a', OTHER: 'b', ONE: '1', TWO: '2' },
    MASTER: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
  })
})

// What the tests' subscriptions refer to: who writes and who signs have the same environment here.
const subscriptions = (...args: string[]) => hooktide(['subscriptions', ...args], { env })
const json = async (...args: string[]) => JSON.parse((await subscriptions(...args, '--json')).out)

describe('subscriptions on a real broker', () => {
  test('add, show, update, list, remove: each is there for the next command', async () => {
    expect(
      await subscriptions('add', '--id', 'a', '--url', 'https://example.com/a?token=1', '--secret', 'env:A'),
    ).toEqual({
      code: 0,
      out: 'added a\n',
      err: '',
    })
    await subscriptions(
      'update',
      'a',
      '--types',
      'order.*,x',
      '--header',
      'X-Key: tops',
      '--status',
      'paused',
      '--reason',
      'moving',
    )
    expect(await json('show', 'a')).toEqual({
      v: 1,
      id: 'a',
      tenant: 'default',
      url: 'https://example.com/a?***',
      types: ['order.*', 'x'],
      ordering: 'key',
      status: 'paused',
      statusReason: 'moving',
      secrets: [{ ref: 'env:A' }],
      headers: { 'X-Key': '***' },
      createdAtMs: expect.any(Number),
      updatedAtMs: expect.any(Number),
    })
    const revealed = await json('show', 'a', '--reveal')
    expect([revealed.url, revealed.headers]).toEqual(['https://example.com/a?token=1', { 'X-Key': 'tops' }])
    await subscriptions('update', 'a', '--status', 'active')
    expect((await json('show', 'a')).statusReason).toBeUndefined()
    expect((await subscriptions('list')).out).toBe(
      [
        'ID  TENANT   STATUS  ORDER  TYPES      URL',
        'a   default  active  key    order.*,x  https://example.com/a',
        '1 subscription',
        '',
      ].join('\n'),
    )
    const misspelt = await subscriptions('update', 'a', '--bearer-token', 'env:NOT_THERE')
    expect(misspelt).toMatchObject({
      code: 0,
      err: expect.stringMatching(/^hint: env:NOT_THERE: not set for this process/),
    })
    expect((await subscriptions('remove', 'a', 'b')).err).toContain('there is no subscription b; nothing was removed')
    expect((await subscriptions('remove', 'a')).out).toBe('removed a\n')
    expect(await subscriptions('show', 'a')).toMatchObject({ code: 1, out: '' })
    expect(await json('list')).toEqual({ subscriptions: [], unreadable: [] })
  })

  test('kafka:new seals a secret and shows it once; rotation signs with both for a while', async () => {
    const added = await json('add', '--id', 'team:b', '--url', 'https://example.com/b', '--secret', 'kafka:new')
    expect(added.newSecrets).toEqual([{ ref: 'kafka:team-b.1', secret: expect.stringMatching(/^whsec_/) }])
    const before = Date.now()
    const rotated = await json('rotate-secret', 'team:b', '--overlap', '1h')
    const [first, second] = rotated.subscription.secrets
    expect(first).toEqual({ ref: 'kafka:team-b.2' })
    expect(second.ref).toBe('kafka:team-b.1')
    expect(second.untilMs - before - 3_600_000).toBeGreaterThanOrEqual(0)
    expect(rotated.newSecrets[0].secret).not.toBe(added.newSecrets[0].secret)
    await subscriptions('rotate-secret', 'team:b', '--secret', 'env:OTHER', '--overlap', '0')
    expect((await json('show', 'team:b')).secrets).toEqual([{ ref: 'env:OTHER' }])
    await subscriptions('remove', 'team:b')
  })

  test('without a master key kafka:new says what to set, and nothing is added', async () => {
    const bare = { ...env, HOOKTIDE_SECRETS_MASTER_KEY_REF: '' }
    const args = ['subscriptions', 'add', '--id', 'c', '--url', 'https://example.com', '--secret', 'kafka:new']
    const { code, err } = await hooktide(args, { env: bare })
    expect(code).toBe(1)
    expect(err).toContain('Set secrets.masterKeyRef to env:NAME or file:PATH')
    expect((await subscriptions('show', 'c')).code).toBe(1)
  })

  test('what is wrong is refused field by field', async () => {
    const { code, err } = await subscriptions('add', '--url', 'http://127.0.0.1/x', '--types', 'a b')
    expect(code).toBe(2)
    expect(err).toContain('error: the subscription has 3 problems')
    for (const field of ['url (http://127.0.0.1/x)', 'types[0] ("a b")', 'secrets: is missing'])
      expect(err).toContain(field)
    await subscriptions('add', '--id', 'twice', '--url', 'https://example.com', '--secret', 'env:A')
    const again = await subscriptions('add', '--id', 'twice', '--url', 'https://example.com', '--secret', 'env:A')
    expect(again).toMatchObject({ code: 1, err: expect.stringContaining('there is a subscription twice already') })
    await subscriptions('remove', 'twice')
  })

  test('apply from stdin: dry run shows drift, apply makes it so, a second one has nothing to do, prune removes', async () => {
    const file = `
subscriptions:
  - { id: one, url: https://example.com/1, secrets: [{ ref: env:ONE }] }
  - { id: two, url: https://example.com/2, secrets: [{ ref: env:TWO }], tenant: acme }
`
    const apply = (input: string, ...args: string[]) =>
      hooktide(['subscriptions', 'apply', '-', ...args], { env, input })
    const plan = '+ create one → https://example.com/1\n+ create two → https://example.com/2\n2 create\n'
    expect(await apply(file, '--dry-run')).toEqual({ code: 1, out: plan, err: '' })
    expect(await json('list')).toEqual({ subscriptions: [], unreadable: [] })
    expect(await apply(file)).toEqual({ code: 0, out: plan, err: '' })
    expect(await apply(file, '--dry-run')).toEqual({ code: 0, out: '2 unchanged\n', err: '' })

    const changed = '{"id":"one","url":"https://example.com/new","secrets":[{"ref":"env:ONE"}],"maxInFlight":3}'
    expect((await apply(changed, '--prune', '--dry-run')).out).toBe(
      [
        '~ update one',
        '    maxInFlight: unset → 3',
        '    url: https://example.com/1 → https://example.com/new',
        '- remove two',
        '1 update, 1 remove',
        '',
      ].join('\n'),
    )
    expect((await apply(changed, '--prune', '--tenant', 'default', '--dry-run')).out).toContain('\n1 update\n')
    expect((await apply(changed, '--prune')).code).toBe(0)
    const { subscriptions: left } = await json('list')
    expect(left.map(({ id, maxInFlight }: { id: string; maxInFlight: number }) => [id, maxInFlight])).toEqual([
      ['one', 3],
    ])

    const listed = (await subscriptions('list', '--reveal', '--json')).out
    expect((await apply(listed)).out).toBe('1 unchanged\n')
  })
})

test('thousands of subscriptions are written in one apply, in several parts, and nobody else is suspected', async () => {
  const own = await ownWorld()
  const file = join(await mkdtemp(join(tmpdir(), 'hooktide-apply-')), 'many.yaml')
  const many = Array.from({ length: 6_000 }, (_, i) => ({
    id: `many${i}`,
    url: 'https://example.com/hook',
    types: ['a'],
    secrets: [{ ref: 'env:A' }],
    description: 'x'.repeat(200),
  }))
  await writeFile(file, JSON.stringify({ subscriptions: many }))
  const applied = await hooktide(['subscriptions', 'apply', file], { env: own })
  expect([applied.code, applied.err.slice(0, 300)]).toEqual([0, expect.not.stringContaining('somebody else')])
}, 60_000)
