import type { Socket } from 'node:net'
import { addressRefusal } from '../core/address-guard.ts'
import { type GuardPolicy, nameAllowed } from '../core/guard-policy.ts'
import { parseIp, sameIp } from '../core/ip.ts'
import type { Target } from '../core/url-rules.ts'
import type { ClientIdentity, Clock } from '../ports.ts'
import { connectFailureOf, Failure } from './failure.ts'
import { fairAfter } from './fair-timer.ts'
import type { Network } from './network.ts'
import type { Resolver } from './resolver.ts'

export interface DialOptions {
  readonly clock: Clock
  readonly policy: GuardPolicy
  readonly resolver: Resolver
  readonly network: Network
  readonly connectTimeoutMs: number
}

/** `address`: the tested one that the socket leads to; null with an error. */
type Done = (error: Failure | null, socket: Socket | null, address: string | null) => void

const maxAddresses = 4
/** Next address when the last one has neither connected nor failed by then (RFC 8305: connection attempt delay). */
const nextAddressMs = 250

/**
 * One guarded connection: look the name up once, test **every** answer, dial only tested addresses, look at
 * `remoteAddress` before the first byte, then TLS. All of it within `connectTimeoutMs`. `done` is called exactly once,
 * unless the returned function (which destroys whatever was begun) comes first.
 */
export function dial(
  target: Target,
  options: DialOptions,
  done: Done,
  client: ClientIdentity | null = null,
): () => void {
  const { clock, policy, network } = options
  const sockets = new Set<Socket>()
  let phase: 'dns' | 'connect' | 'tls' = 'dns'
  let ended = false
  let stopNext: (() => void) | null = null
  let untried: string[] = []
  let reached: string | null = null
  const stopTimer = fairAfter(clock, options.connectTimeoutMs, () =>
    end(new Failure(phase, `${phaseNames[phase]} not done within ${options.connectTimeoutMs} ms`), null),
  )

  function end(error: Failure | null, socket: Socket | null): void {
    if (ended) return
    ended = true
    stopTimer()
    stopNext?.()
    for (const other of sockets) if (other !== socket) destroy(other)
    done(error, socket, socket === null ? null : reached)
  }

  function begin(addresses: readonly string[]): void {
    if (ended) return
    const refusal = refusalOf(target, addresses, policy)
    if (refusal !== null) {
      end(new Failure('blocked', refusal), null)
      return
    }
    phase = 'connect'
    untried = addresses.slice(0, maxAddresses)
    next()
  }

  function next(): void {
    const address = untried.shift()
    if (address === undefined || ended || phase === 'tls') return
    stopNext?.()
    stopNext = untried.length === 0 ? null : clock.after(nextAddressMs, next)
    let socket: Socket
    try {
      socket = network.tcp(address, target.port)
    } catch (error) {
      end(connectFailureOf(error, phase), null)
      return
    }
    sockets.add(socket)
    socket.once('error', (error) => {
      sockets.delete(socket)
      socket.destroy()
      if (phase === 'connect' && untried.length > 0) return next()
      if (sockets.size === 0 || phase === 'tls') end(connectFailureOf(error, phase), null)
    })
    socket.once(network.ready ?? 'connect', () => {
      if (ended || phase === 'tls') return destroy(socket)
      const peer = network.peer === undefined ? socket.remoteAddress : network.peer(socket)
      const remote = parseIp(peer ?? '')
      const tested = parseIp(address)
      if (remote === null || tested === null || !sameIp(remote, tested)) {
        // No remote address at all: the endpoint was gone again before it could be asked whom it belongs to.
        const wrong = `connected to ${peer}, but ${address} was tested`
        const gone = 'the endpoint closed the connection at once'
        end(remote === null ? new Failure('reset', gone) : new Failure('blocked', wrong), null)
        return
      }
      stopNext?.()
      reached = address
      for (const other of sockets) if (other !== socket) destroy(other)
      if (target.secure) secure(socket)
      else end(null, socket)
    })
  }

  function secure(tcp: Socket): void {
    phase = 'tls'
    try {
      const socket = network.tls(tcp, target.hostname, target.literal, client)
      sockets.add(socket)
      socket.once('error', (error) => end(connectFailureOf(error, phase), null))
      socket.once('close', () =>
        end(new Failure('tls', 'the endpoint closed the connection during the handshake'), null),
      )
      socket.once('secureConnect', () => {
        sockets.delete(tcp)
        end(null, socket)
      })
    } catch (error) {
      end(connectFailureOf(error, phase), null)
    }
  }

  if (target.literal) begin([target.hostname])
  else
    options.resolver.lookup(target.hostname, (error, addresses) => {
      if (error !== null) end(error, null)
      else if (addresses.length === 0) end(new Failure('dns', `${target.hostname} has no addresses`), null)
      else begin(addresses)
    })

  return () => {
    if (ended) return
    ended = true
    stopTimer()
    stopNext?.()
    for (const socket of sockets) destroy(socket)
  }
}

/** Why a target whose name has these addresses is not sent to; null: every one of them may be. */
export function refusalOf(target: Target, addresses: readonly string[], policy: GuardPolicy): string | null {
  const trusted = !target.literal && nameAllowed(target.hostname, policy)
  for (const address of addresses) {
    const refusal = addressRefusal(address, policy, trusted)
    if (refusal !== null) return explain(target, address, refusal)
  }
  return null
}

const phaseNames = { dns: 'lookup', connect: 'connection', tls: 'TLS handshake' } as const

function explain(target: Target, address: string, refusal: string): string {
  return target.literal
    ? `address ${address}: ${refusal}`
    : `${target.hostname} resolves to ${address || '""'}: ${refusal}`
}

/** A late error of a socket nobody wants any more must not become an uncaught exception. */
function destroy(socket: Socket): void {
  socket.on('error', ignore)
  socket.destroy()
}

function ignore(): void {}
