import { connect, type Socket } from 'node:net'
import { Failure } from './failure.ts'
import type { Network } from './network.ts'

/** An HTTP proxy that everything leaves through. The operator's own, so its address is not subject to the guard. */
export interface EgressProxy {
  readonly host: string
  readonly port: number
  /** Value of `proxy-authorization`, e.g. `Basic …`. */
  readonly authorization?: string
}

const maxAnswerBytes = 8192

/**
 * Tunnels (RFC 9110 §9.3.6) to the tested address, never to a name: the proxy gets no chance to resolve it differently.
 * Plain http goes through a tunnel too, so the proxy must allow CONNECT to the ports of such endpoints.
 */
export function throughProxy(network: Network, proxy: EgressProxy): Network {
  const peers = new WeakMap<Socket, string>()
  return {
    ready: 'tunnel',
    peer: (socket) => peers.get(socket),
    tls: network.tls,
    tcp(address, port) {
      const socket = connect({ host: proxy.host, port: proxy.port, noDelay: true })
      const authority = `${address.includes(':') ? `[${address}]` : address}:${port}`
      const extra = proxy.authorization === undefined ? '' : `proxy-authorization: ${proxy.authorization}\r\n`
      socket.once('connect', () => socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${extra}\r\n`))
      let answer = Buffer.alloc(0)
      const read = () => {
        for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) answer = Buffer.concat([answer, chunk])
        const end = answer.indexOf('\r\n\r\n')
        if (end === -1 && answer.length <= maxAnswerBytes) return
        socket.off('readable', read).off('end', ended)
        const status = /^HTTP\/1\.[01] (\d{3})/.exec(answer.toString('latin1', 0, 16))?.[1]
        if (end === -1 || status === undefined || status[0] !== '2') {
          socket.destroy(
            new Failure('connect', `the proxy refused the tunnel to ${authority}: ${status ?? 'no HTTP answer'}`),
          )
          return
        }
        if (answer.length > end + 4) socket.unshift(answer.subarray(end + 4))
        peers.set(socket, address)
        socket.emit('tunnel')
      }
      const ended = () => socket.destroy(new Failure('connect', 'the proxy closed the connection'))
      socket.on('readable', read).once('end', ended)
      return socket
    },
  }
}
