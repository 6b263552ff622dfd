import { connect as connectTcp, type Socket } from 'node:net'
import { type ConnectionOptions, createSecureContext, connect as startTls } from 'node:tls'

/** The two ways to the outside. The real ones below; a conformance run brings some that record instead of dialling. */
export interface Network {
  /** Begins a TCP connection to an address (never a name): `ready` (default `connect`) or `error` follows. */
  tcp(address: string, port: number): Socket
  readonly ready?: string
  /** The address that a ready socket leads to; default its `remoteAddress`. */
  peer?(socket: Socket): string | undefined
  /** Begins the handshake on a connected socket: `secureConnect` or `error` follows. */
  tls(socket: Socket, hostname: string, literal: boolean): Socket
}

export interface TlsOptions {
  /** Further certificate authorities, PEM, beside the built-in ones. */
  readonly ca?: readonly string[]
}

export function createNetwork(options: TlsOptions & { readonly rootCertificates: readonly string[] }): Network {
  // One context for all connections: parsing the root certificates costs milliseconds.
  const ca = options.ca === undefined ? undefined : [...options.rootCertificates, ...options.ca]
  const secureContext = createSecureContext({ minVersion: 'TLSv1.2', ...(ca === undefined ? {} : { ca }) })
  return {
    tcp: (address, port) => connectTcp({ host: address, port, noDelay: true, autoSelectFamily: false }),
    tls(socket, hostname, literal) {
      const tls: ConnectionOptions = {
        socket,
        secureContext,
        host: hostname,
        ALPNProtocols: ['http/1.1'],
        rejectUnauthorized: true,
        // Names only: an IP address is no server name (RFC 6066), but the certificate is checked against it.
        ...(literal ? {} : { servername: hostname }),
      }
      return startTls(tls)
    },
  }
}
