import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Attempt } from '../../src/core/attempt.ts'
import { type StoryPlace, whereNow } from '../../src/operations/delivery-story.ts'
import { chooseLine, type StandingLine } from '../../src/operations/line-read.ts'
import { createWorld, type Running, until, type World } from '../service/world.ts'
import { hooktide } from './support.ts'

describe('which line is meant', () => {
  const standing = (line: string) => ({ lane: 0, state: { line } }) as StandingLine
  const lines = ['a k x', 'a k y', 'b s', 'b-2 k x'].map(standing)
  test.each([
    { line: ['a k x'], key: 'a k x' },
    { line: ['a', 'k', 'x'], key: 'a k x' },
    { line: ['a', 'k', 'x y'], key: 'a k x y' },
    { line: ['b', 's'], key: 'b s' },
    { line: ['c o'], key: 'c o' },
    { line: [], subscription: 'a', of: 'z', key: 'a k z' },
    { line: [], subscription: 'b', key: 'b s' },
  ])('$line $subscription $of: $key', ({ line, subscription, of, key }) => {
    expect(chooseLine({ line, subscription, key: of }, lines)).toBe(key)
  })

  test.each([
    { line: ['a'], says: '"a" is no line' },
    { line: ['a', 'k'], says: '"a k" is no line' },
    { line: ['a', 'x', 'y'], says: '"a x y" is no line' },
    { line: [], says: 'no line was named' },
    { line: [], subscription: 'a', says: '2 lines of a stand' },
    { line: [], subscription: 'c', says: 'no line of c stands' },
  ])('$line $subscription: $says', ({ line, subscription, says }) => {
    expect(() => chooseLine({ line, subscription }, lines)).toThrow(says)
  })
})

describe('where a delivery is', () => {
  const place = (kind: StoryPlace['kind'], done: boolean) => ({ kind, done }) as StoryPlace
  const attempt = (settlement: Attempt['settlement']) => ({ settlement }) as Attempt
  test.each([
    { attempts: [], places: [place('deliveries', false)], state: 'queued' },
    { attempts: [attempt('scheduled')], places: [place('deliveries', true), place('tier', false)], state: 'scheduled' },
    { attempts: [], places: [place('deliveries', true), place('parked', false)], state: 'parked' },
    { attempts: [attempt('done')], places: [place('deliveries', true)], state: 'delivered' },
    { attempts: [attempt('cancelled')], places: [place('tier', true)], state: 'cancelled' },
    { attempts: [attempt('dead')], places: [place('deliveries', true), place('dead', false)], state: 'dead' },
    { attempts: [attempt('dead')], places: [place('deliveries', false), place('dead', false)], state: 'queued' },
    { attempts: [attempt('dead'), attempt('done')], places: [place('dead', false)], state: 'delivered' },
    { attempts: [attempt('scheduled')], places: [], state: 'unknown' },
  ] as const)('$state', ({ attempts, places, state }) => {
    expect(whereNow(attempts, places).state).toBe(state)
  })
})

describe('a running service obeys, on a real broker', () => {
  let world: World
  let service: Running
  beforeAll(async () => {
    world = await createWorld()
    service = await world.up()
  })
  afterAll(() => world?.close())

  const run = async (...args: string[]) => {
    const result = await hooktide(args, { env: { ...world.env, USER: 'ada' } })
    expect(result).toMatchObject({ code: 0 })
    return result.out
  }
  const json = async (...args: string[]) => JSON.parse(await run(...args, '--json'))
  const applied = (target: string, order: string) =>
    until(
      `${target} ${order}`,
      () => service.log.of('control.applied', (l) => l.target === target && l.order === order).length > 0,
      {
        withinMs: 1_000,
      },
    )

  test('a tier is paused, seen to be, and resumed: what came due meanwhile goes then', async () => {
    expect(await json('tiers', 'pause', 'retry-300ms', '--for', '10m', '--reason', 'their restore')).toMatchObject({
      order: {
        kind: 'tier',
        target: 'retry-300ms',
        order: 'pause',
        by: expect.stringMatching(/^ada@/),
        reason: 'their restore',
      },
    })
    await applied('tier:retry-300ms', 'pause')
    const url = world.endpoint.at('/paused', (_post, nth) => ({ status: nth === 1 ? 503 : 200 }))
    await world.subscribe(world.subscription('paused', url, { types: ['paused'], ordering: 'key' }))
    await world.produce({ id: 'p0', type: 'paused', key: 'k' }, { id: 'p1', type: 'paused', key: 'k' })
    const waiting = await until('it waits in the tier', async () => {
      const { tiers } = await json('tiers', 'list')
      return tiers.find(
        ({ tier, waiting }: { tier: string; waiting: number }) => tier === 'retry-300ms' && waiting === 1,
      )
    })
    expect(waiting).toMatchObject({ state: 'paused', delayMs: 300 })
    expect(await run('tiers', 'list')).toMatch(/retry-300ms +300ms +1 +paused +ada@/)
    const { lines } = await json('lines', 'show', '--subscription', 'paused', '--key', 'k')
    expect(lines).toMatchObject([
      { line: 'paused k k', state: 'blocked', headDelivery: { attempts: 1, lastError: '503', eventId: 'p0' } },
    ])
    expect(lines[0].headDelivery.dueMs).toBeLessThan(Date.now() + 2_000)
    const id = lines[0].head
    expect(await json('deliveries', 'show', id)).toMatchObject({
      state: 'scheduled',
      eventId: 'p0',
      attempts: [{ status: 503 }],
    })
    const again = await json('deliveries', 'show', id, '--subscription', 'paused')
    expect(again.place).toMatchObject({ kind: 'tier', line: 'paused k k' })
    expect(world.endpoint.of('/paused')).toHaveLength(1)
    expect(await run('control', 'list')).toMatch(/tier:retry-300ms {2}paused by ada@.*: their restore/)

    expect(await run('tiers', 'resume', `${world.prefix}retry-300ms`)).toContain('retry-300ms let go on by ada@')
    await until('both are delivered', () => world.endpoint.delivered('/paused').length === 2)
    expect(world.endpoint.of('/paused').map(({ body }) => String(body))).toEqual(['p0', 'p0', 'p1'])
    expect(await json('control', 'list')).toEqual({ orders: [] })
    await until(
      'it is delivered in the log too',
      async () => (await json('deliveries', 'show', id)).state === 'delivered',
    )
    const late = await hooktide(['deliveries', 'cancel', id, '--subscription', 'paused'], { env: world.env })
    expect(late).toMatchObject({ code: 1, err: expect.stringContaining('is delivered already') })
  })

  test('a stopped line is listed, shown with what is parked, and goes on without its dead head', async () => {
    const url = world.endpoint.at('/stopped', (post) => ({ status: String(post.body) === 's0' ? 400 : 200 }))
    await world.subscribe(world.subscription('stopped', url, { types: ['stopped'], ordering: 'key', onDead: 'block' }))
    for (let i = 0; i < 80; i++) await world.produce({ id: `s${i}`, type: 'stopped', key: 'k 1' })
    const [line] = await until('it stopped', async () => {
      const { lines } = await json('lines', 'list', '--state', 'stopped', '--subscription', 'stopped')
      return lines.length === 1 && lines[0].parked > 0 && lines
    })
    expect(line).toMatchObject({ line: 'stopped k k 1', orderingKey: 'k 1', ordered: true, reason: 'head is dead' })
    const shown = await run('lines', 'show', 'stopped k k 1', '--limit', '3')
    expect(shown).toContain('stopped, its head is dead')
    expect(shown).toMatch(/PARKED .*\n.*stopped +s\d+/)
    for (const row of shown.split('\n')) expect(row.length).toBeLessThanOrEqual(120)
    const unsure = await hooktide(['lines', 'cancel', 'stopped', 'k', 'k 1'], { env: world.env })
    expect(unsure).toMatchObject({ code: 2, err: expect.stringContaining('Say --yes') })
    await run('lines', 'release', '--subscription', 'stopped', '--reason', 'agreed')
    await until('its followers are delivered', () => world.endpoint.delivered('/stopped').length === 79)
    expect(world.endpoint.of('/stopped').map(({ body }) => String(body))).toEqual(
      Array.from({ length: 80 }, (_, i) => `s${i}`),
    )
    await until(
      'no line of it stands',
      async () => (await json('lines', 'list', '--subscription', 'stopped')).total === 0,
    )
    expect(await hooktide(['lines', 'release', 'stopped k k 1'], { env: world.env })).toMatchObject({ code: 1 })
  })

  test('a head is skipped to the dead letters, a line is cancelled, a subscription pauses and resumes', async () => {
    const url = world.endpoint.at('/head', (post) => ({
      status: String(post.body) === 'h0' ? 503 : 200,
      headers: { 'retry-after': '5' },
    }))
    await world.subscribe(world.subscription('head', url, { types: ['head'], ordering: 'subscription' }))
    await world.produce({ id: 'h0', type: 'head' }, { id: 'h1', type: 'head' })
    await until(
      'it is blocked',
      async () => (await json('lines', 'list', '--subscription', 'head', '--state', 'blocked')).total === 1,
    )
    const { order } = await json('lines', 'skip', 'head', 's', '--dead', '--by', 'grace', '--reason', 'by hand')
    expect(order).toMatchObject({
      kind: 'delivery',
      order: 'cancel',
      by: 'grace',
      args: { to: 'dead', line: 'head s' },
    })
    await until('the follower goes on', () => world.endpoint.delivered('/head').length === 1, { withinMs: 3_000 })
    const dead = await until(
      'the head is dead',
      async () => (await json('dead', 'list', '--subscription', 'head')).dead[0],
    )
    expect(dead).toMatchObject({ deliveryId: order.target, reason: 'operator', error: 'by hand', attempts: 1 })

    await run('subscriptions', 'pause', 'head', '--reason', 'migration')
    expect(await json('subscriptions', 'show', 'head')).toMatchObject({ status: 'paused', statusReason: 'migration' })
    await until('the service knows', () => service.service.pipeline.subscriptions.get('head')?.status === 'paused')
    await world.produce({ id: 'h2', type: 'head' }, { id: 'h3', type: 'head' })
    await until(
      'they are parked',
      async () => (await json('lines', 'list', '--subscription', 'head')).lines[0]?.parked === 2,
    )
    await run('lines', 'cancel', '--subscription', 'head', '--yes', '--reason', 'obsolete')
    const cancelled = await until('they are cancelled', async () => {
      const found = (await world.attempts('head')).filter(({ settlement }) => settlement === 'cancelled')
      return found.length === 2 && found
    })
    expect(cancelled.map(({ error, outcome }) => [error, outcome])).toEqual([
      ['obsolete', null],
      ['obsolete', null],
    ])
    const resumed = await json('subscriptions', 'resume', 'head')
    expect(resumed.subscription).toMatchObject({ status: 'active' })
    expect(resumed.subscription).not.toHaveProperty('statusReason')
    await world.produce({ id: 'h4', type: 'head' })
    await until('what comes later is delivered', () => world.endpoint.delivered('/head').length === 2)

    expect(
      await hooktide(['control', 'clear', 'line:head s', `delivery:${order.target}`], { env: world.env }),
    ).toMatchObject({ code: 0 })
    expect(await hooktide(['control', 'clear', 'line:head s'], { env: world.env })).toMatchObject({ code: 1 })
    expect(await hooktide(['control', 'clear'], { env: world.env })).toMatchObject({ code: 2 })
    expect(await hooktide(['tiers', 'pause', 'retry-9h'], { env: world.env })).toMatchObject({
      code: 1,
      err: expect.stringContaining('Give one of retry-300ms, retry-1s'),
    })
    expect(await hooktide(['deliveries', 'show', 'msg_none'], { env: world.env })).toMatchObject({
      code: 1,
      err: expect.stringContaining('there is no delivery msg_none'),
    })
  })
})
