import { afterAll, beforeAll, expect, test } from 'vitest'
import { hooktide } from '../cli/support.ts'
import { type ApiWorld, apiWorld, tokens } from './world.ts'

let world: ApiWorld
beforeAll(async () => {
  world = await apiWorld()
})
afterAll(() => world.close())

/** The same command on Kafka itself, and through the API with nothing but its URL and a token. */
const direct = (args: readonly string[], input = '') => hooktide(args, { env: world.env, input })
const remote = (args: readonly string[], input = '') =>
  hooktide([...args, '--api-url', world.base, '--token-ref', 'env:TOKEN'], { env: { TOKEN: tokens.operator }, input })

const add = (id: string) => [
  'subscriptions',
  'add',
  '--id',
  id,
  '--url',
  'http://127.0.0.1:18080/hook',
  '--secret',
  'env:SIGNING',
]

test('every reading command prints the same through the API as on Kafka, for people and as JSON', async () => {
  expect((await remote(add('seen'))).err).toBe('')
  expect((await direct(add('also'))).out).toBe('added also\n')
  expect((await remote(['produce', '--type', 'a.b', '--key', 'k', '--data', '{}'])).code).toBe(0)
  expect((await remote(['tiers', 'pause', 'retry-10s', '--reason', 'why'])).code).toBe(0)
  const commands = [
    ['subscriptions', 'list'],
    ['subscriptions', 'show', 'seen'],
    ['dead', 'list'],
    ['dead', 'redrive', '--all', '--dry-run'],
    ['jobs', 'list', '--all'],
    ['replay', '--subscription', 'seen', '--dry-run'],
    ['replay', '--subscription', 'seen', '--shadow', '--types', 'a.*'],
    ['lines', 'list'],
    ['tiers', 'list'],
    ['control', 'list'],
  ]
  for (const command of commands) {
    for (const json of [[], ['--json']]) {
      const [here, there] = [await direct([...command, ...json]), await remote([...command, ...json])]
      const plain = (text: string) => text.replaceAll(/"job": "[^"]+"/g, '"job"')
      expect([command, there.code, plain(there.out), there.err]).toEqual([
        command,
        here.code,
        plain(here.out),
        here.err,
      ])
    }
  }
  const statuses = [await direct(['status', '--json']), await remote(['status', '--json'])].map(({ out }) =>
    JSON.parse(out),
  )
  expect({ ...statuses[1], atMs: 0 }).toEqual({ ...statuses[0], atMs: 0 })
})

test('a job is started, seen and cancelled through the API as on Kafka', async () => {
  const started = await remote([
    'replay',
    '--subscription',
    'seen',
    '--rate',
    '5',
    '--detach',
    '--json',
    '--reason',
    'why',
  ])
  expect(started.err).toBe('')
  const { id, by, reason } = JSON.parse(started.out)
  expect([by, reason]).toEqual([expect.stringContaining('(token operator)'), 'why'])
  for (const run of [direct, remote]) {
    expect(JSON.parse((await run(['jobs', 'show', id, '--json'])).out)).toMatchObject({
      id,
      state: 'running',
      perSecond: 5,
    })
    const refused = await run(['replay', '--subscription', 'seen'])
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining(`job ${id} does this already`)])
  }
  expect((await remote(['jobs', 'cancel', id])).out).toContain('cancelling')
  expect(JSON.parse((await direct(['jobs', 'show', id, '--json'])).out).cancelledBy).toContain('(token operator)')
  const redrive = await remote(['jobs', 'redrive', '--subscription', 'seen', '--detach', '--json'])
  expect(JSON.parse(redrive.out)).toMatchObject({ kind: 'redrive', subscription: 'seen' })
})

test('what can not be done is told in the same words and with the same exit code', async () => {
  const commands = [
    ['subscriptions', 'show', 'nobody'],
    ['subscriptions', 'add', '--url', 'http://10.0.0.1/', '--secret', 'env:SIGNING'],
    ['subscriptions', 'remove', 'nobody'],
    ['dead', 'show', 'msg_none'],
    ['dead', 'list', '--cursor', 'x'],
    ['lines', 'release', 'x', 's'],
    ['lines', 'cancel', 'x', 's'],
    ['tiers', 'pause', 'nope'],
    ['control', 'clear', 'tier:nope'],
    ['deliveries', 'show', 'msg_none'],
  ]
  for (const command of commands) {
    const [here, there] = [await direct(command), await remote(command)]
    expect([command, there.code, there.err]).toEqual([command, here.code, here.err])
    expect(there.code).not.toBe(0)
  }
})

test('a subscription lives through the API: update, pause, resume, apply, remove', async () => {
  expect((await remote(add('life'))).code).toBe(0)
  expect((await remote(['subscriptions', 'update', 'life', '--max-in-flight', '3', '--description', 'd'])).out).toBe(
    'updated life\n',
  )
  expect((await remote(['subscriptions', 'update', 'life', '--unset', 'maxInFlight'])).code).toBe(0)
  expect((await remote(['subscriptions', 'pause', 'life', '--reason', 'x'])).out).toBe('paused life\n')
  const shown = JSON.parse((await direct(['subscriptions', 'show', 'life', '--json'])).out)
  expect(shown).toMatchObject({ status: 'paused', statusReason: 'x', description: 'd' })
  expect('maxInFlight' in shown).toBe(false)
  expect((await remote(['subscriptions', 'resume', 'life'])).out).toBe('resumed life\n')
  const file = JSON.stringify([{ id: 'life', url: 'http://127.0.0.1:18080/v2', secrets: [{ ref: 'env:SIGNING' }] }])
  const plan = await remote(['subscriptions', 'apply', '-', '--dry-run'], file)
  expect([plan.code, plan.out]).toEqual([1, expect.stringContaining('~ update life')])
  expect((await remote(['subscriptions', 'apply', '-'], file)).code).toBe(0)
  expect((await remote(['subscriptions', 'remove', 'life'])).out).toBe('removed life\n')
  expect((await direct(['subscriptions', 'show', 'life'])).code).toBe(1)
})

test('events go in through the API as they do on Kafka, envelopes and bytes included', async () => {
  const lines = Array.from({ length: 30 }, (_, n) => JSON.stringify({ type: 'n', id: `n-${n}`, key: 'k' })).join('\n')
  const sent = await remote(['produce', '--ndjson', '--json'], lines)
  expect(JSON.parse(sent.out)).toMatchObject({ events: 30, partitions: [{ count: 30 }] })
})

test('a token that is missing, wrong or not there to be read, and an API that is none: told with what to do', async () => {
  const ask = (args: string[], env: Record<string, string> = {}) =>
    hooktide(['subscriptions', 'list', ...args], { env })
  expect((await ask(['--api-url', world.base])).err).toContain('a bearer token is needed')
  expect((await ask([], { HOOKTIDE_URL: world.base, HOOKTIDE_TOKEN: 'wrong' })).err).toContain('the token is not known')
  expect((await ask([], { HOOKTIDE_URL: world.base, HOOKTIDE_TOKEN: tokens.reader })).code).toBe(0)
  expect((await ask(['--api-url', world.base, '--token-ref', 'env:NOPE'])).code).toBe(2)
  expect((await ask(['--api-url', 'ftp://x'])).code).toBe(2)
  expect((await ask(['--api-url', 'http://127.0.0.1:1'])).err).toContain('gave no answer')
  const revealed = await remote(['subscriptions', 'list', '--reveal'])
  expect([revealed.code, revealed.err]).toEqual([2, expect.stringContaining('--reveal')])
})
