import { expect, test } from 'vitest'
import { Receiver } from '../../src/cli/receiver.ts'
import { realClock } from '../support/clock.ts'
import { atEnd, hooktide, ownWorld } from './support.ts'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

async function receiver(known: string, status?: number): Promise<{ url: string; types: string[]; receiver: Receiver }> {
  const types: string[] = []
  const made = new Receiver({
    clock: realClock,
    port: 0,
    secretsOf: () => [known],
    behaviours: new Map(status === undefined ? [] : [['*', { status }]]),
    onRequest: ({ eventType }) => types.push(eventType),
  })
  const port = await made.start()
  atEnd(() => made.stop())
  return { url: `http://127.0.0.1:${port}/hook`, types, receiver: made }
}

test('a subscription that is to be verified is active once its endpoint sends the challenge back, and paused with the reason until then', async () => {
  const env = await ownWorld({
    HOOK: secret,
    HOOKTIDE_HTTP_ALLOW_HTTP: 'true',
    HOOKTIDE_HTTP_ALLOW_PRIVATE: '127.0.0.1',
    MASTER: `m:${Buffer.alloc(32).toString('base64')}`,
    HOOKTIDE_SECRETS_MASTER_KEY_REF: 'env:MASTER',
  })
  const cli = (...args: string[]) => hooktide(args, { env })
  const statusOf = async (id: string) => {
    const { status, statusReason } = JSON.parse((await cli('subscriptions', 'show', id, '--json')).out)
    return [status, statusReason]
  }
  const add = (id: string, url: string, ...more: string[]) =>
    cli('subscriptions', 'add', '--id', id, '--url', url, '--secret', 'env:HOOK', ...more)

  const good = await receiver(secret)
  const added = await add('good', good.url, '--verify')
  expect([added.code, added.err]).toEqual([0, 'good: verified; it is active\n'])
  expect(await statusOf('good')).toEqual(['active', undefined])
  expect(good.types).toEqual(['endpoint.challenge'])

  // Knows another secret, so it refuses; somebody's web page answers 200 with anything.
  const stranger = await receiver(`whsec_${Buffer.alloc(32, 1).toString('base64')}`)
  await add('stranger', stranger.url, '--verify')
  expect(await statusOf('stranger')).toEqual(['paused', 'endpoint not verified: it answered 401 to the challenge'])
  const fails = await receiver(secret, 201)
  await add('page', fails.url, '--verify')
  expect(await statusOf('page')).toEqual([
    'paused',
    'endpoint not verified: it answered 201, but not with the challenge',
  ])
  const again = await cli('endpoints', 'verify', 'page', 'good')
  expect([again.code, again.out]).toEqual([
    1,
    'page: not verified: it answered 201, but not with the challenge; it is paused\ngood: verified; it is active\n',
  ])
  fails.receiver.behave('*', {})
  expect((await cli('endpoints', 'verify', 'page')).code).toBe(0)
  expect(await statusOf('page')).toEqual(['active', undefined])

  // Without being asked, when the configuration says so; a made secret has to get to the receiver first.
  env.HOOKTIDE_ENDPOINTS_CHALLENGE = 'on'
  const made = await cli('subscriptions', 'add', '--id', 'made', '--url', good.url, '--secret', 'kafka:new')
  expect([made.code, made.err]).toMatchObject([0, expect.stringContaining('then run hooktide endpoints verify made')])
  expect(await statusOf('made')).toEqual(['paused', 'endpoint not verified: it has not answered a challenge yet'])
  await cli('subscriptions', 'update', 'good', '--description', 'the same place')
  expect(await statusOf('good')).toEqual(['active', undefined])
  await cli('subscriptions', 'update', 'good', '--url', stranger.url)
  expect((await statusOf('good'))[0]).toBe('paused')
  const file = ['good', 'new'].map((id) => ({ id, url: good.url, secrets: [{ ref: 'env:HOOK' }], status: 'active' }))
  const applied = await hooktide(['subscriptions', 'apply', '-'], { env, input: JSON.stringify(file) })
  expect([applied.code, applied.err]).toEqual([0, 'good: verified; it is active\nnew: verified; it is active\n'])
  expect([await statusOf('good'), await statusOf('new')]).toEqual([
    ['active', undefined],
    ['active', undefined],
  ])
  // A pause of an operator's own is not ended by an answer.
  await cli('subscriptions', 'update', 'new', '--status', 'paused', '--reason', 'moving')
  expect((await cli('endpoints', 'verify', 'new')).code).toBe(0)
  expect(await statusOf('new')).toEqual(['paused', 'moving'])
}, 90_000)
