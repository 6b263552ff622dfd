import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { type GuardPolicy, guardPolicy } from '../../src/core/guard-policy.ts'
import { checkUrl, type Target } from '../../src/core/url-rules.ts'
import { dial } from '../../src/http/dial.ts'
import type { Failure } from '../../src/http/failure.ts'
import { Resolver } from '../../src/http/resolver.ts'
import { realClock } from '../support/clock.ts'

type Behaviour = 'connects' | 'refuses' | 'hangs' | 'lies' | 'vanishes'

/** A socket that does what the test says. */
class FakeSocket extends EventEmitter {
  remoteAddress: string | undefined
  destroyed = false

  destroy(): this {
    this.destroyed = true
    return this
  }
}

function world(addresses: readonly string[], behaviour: Record<string, Behaviour>, policy: GuardPolicy = open) {
  const sockets = new Map<string, FakeSocket>()
  const order: string[] = []
  const options = {
    clock: realClock,
    policy,
    connectTimeoutMs: 600,
    resolver: new Resolver({
      clock: realClock,
      hosts: new Map([['hooks.example.com', addresses]]),
      query: () => Promise.reject(new Error('no lookup')),
    }),
    network: {
      tcp(address: string) {
        const socket = new FakeSocket()
        sockets.set(address, socket)
        order.push(address)
        process.nextTick(() => {
          const what = behaviour[address] ?? 'hangs'
          if (what === 'refuses')
            socket.emit('error', Object.assign(new Error(`connect ECONNREFUSED ${address}`), { code: 'ECONNREFUSED' }))
          if (what === 'hangs' || what === 'refuses') return
          socket.remoteAddress = what === 'lies' ? '10.0.0.1' : what === 'vanishes' ? undefined : address
          socket.emit('connect')
        })
        return socket as unknown as Socket
      },
      tls: (socket: Socket) => socket,
    },
  }
  return { options, sockets, order }
}

function targetOf(url: string, policy: GuardPolicy = open): Target {
  const target = checkUrl(url, policy)
  if (!target.ok) throw new Error(target.reason)
  return target.value
}

const made = guardPolicy({ allowHttp: true })
if (!made.ok) throw new Error(made.reason)
const open = made.value

function dialled(
  target: Target,
  options: Parameters<typeof dial>[1],
): Promise<{ error: Failure | null; socket: unknown }> {
  return new Promise((resolve) => dial(target, options, (error, socket) => resolve({ error, socket })))
}

const target = targetOf('http://hooks.example.com/')

test('one private answer among public ones stops the whole attempt before any dial', async () => {
  const { options, order } = world(['93.184.215.14', '8.8.8.8', '8.8.4.4', '1.1.1.1', '1.0.0.1', '10.0.0.5'], {
    '93.184.215.14': 'connects',
  })
  const { error } = await dialled(target, options)
  expect(error).toMatchObject({
    class: 'blocked',
    message: expect.stringMatching(/hooks\.example\.com resolves to 10\.0\.0\.5: private/),
  })
  expect(order).toEqual([])
})

test('a socket that is connected to another address than the tested one is never used', async () => {
  const { options, sockets } = world(['93.184.215.14'], { '93.184.215.14': 'lies' })
  const { error, socket } = await dialled(target, options)
  expect([error?.class, socket]).toEqual(['blocked', null])
  expect(sockets.get('93.184.215.14')?.destroyed).toBe(true)
})

test('a socket that is gone as soon as it connected is a reset, not a blocked address', async () => {
  const { options } = world(['93.184.215.14'], { '93.184.215.14': 'vanishes' })
  expect((await dialled(target, options)).error?.class).toBe('reset')
})

test('addresses that refuse or hang give way to the next one, and only the winner stays open', async () => {
  const { options, sockets, order } = world(['1.1.1.1', '8.8.8.8', '93.184.215.14'], {
    '1.1.1.1': 'refuses',
    '8.8.8.8': 'hangs',
    '93.184.215.14': 'connects',
  })
  const { error, socket } = await dialled(target, options)
  expect(error).toBeNull()
  expect(socket).toBe(sockets.get('93.184.215.14'))
  expect(order).toEqual(['1.1.1.1', '8.8.8.8', '93.184.215.14'])
  expect([...sockets.values()].map((each) => each.destroyed)).toEqual([true, true, false])
})

test('no address is dialled twice and no more than four are', async () => {
  const addresses = ['1.1.1.1', '1.0.0.1', '8.8.8.8', '8.8.4.4', '9.9.9.9']
  const { options, order } = world(
    addresses,
    Object.fromEntries(addresses.map((address) => [address, 'refuses' as const])),
  )
  const { error } = await dialled(target, options)
  expect(error).toMatchObject({ class: 'connect', message: expect.stringMatching(/ECONNREFUSED/) })
  expect(order).toEqual(addresses.slice(0, 4))
})

test('everything together ends at the connect time-out, named after its phase', async () => {
  const hanging = world(['1.1.1.1'], { '1.1.1.1': 'hangs' })
  expect((await dialled(target, hanging.options)).error).toMatchObject({ class: 'connect' })
  expect(hanging.sockets.get('1.1.1.1')?.destroyed).toBe(true)
  const handshake = world(['1.1.1.1'], { '1.1.1.1': 'connects' })
  const secure = await dialled(targetOf('https://hooks.example.com/'), handshake.options)
  expect(secure.error).toMatchObject({
    class: 'tls',
    message: expect.stringMatching(/TLS handshake not done within 600 ms/),
  })
})

test('a literal is tested too, though nothing is looked up', async () => {
  const { options, order } = world([], {})
  const literal: Target = { ...targetOf('http://1.1.1.1/'), hostname: '10.0.0.1' }
  expect((await dialled(literal, options)).error?.class).toBe('blocked')
  expect(order).toEqual([])
})

test('a listed name may be private, its metadata address still may not', async () => {
  const named = guardPolicy({ allowHttp: true, allowPrivate: ['hooks.example.com'] })
  if (!named.ok) throw new Error(named.reason)
  const inside = world(['10.0.0.5'], { '10.0.0.5': 'connects' }, named.value)
  expect((await dialled(target, inside.options)).error).toBeNull()
  const metadata = world(['169.254.169.254'], { '169.254.169.254': 'connects' }, named.value)
  expect((await dialled(target, metadata.options)).error?.class).toBe('blocked')
})

test('a stopped dial destroys what it began and reports nothing', async () => {
  const { options, sockets } = world(['1.1.1.1'], { '1.1.1.1': 'connects' })
  let told = 0
  dial(target, options, () => told++)()
  await new Promise((resolve) => setImmediate(resolve))
  expect([told, sockets.get('1.1.1.1')?.destroyed]).toEqual([0, true])
})
