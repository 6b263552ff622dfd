import { connect as connectTcp, type Socket } from 'node:net'
import { type ConnectionOptions, createSecureContext, type SecureContext, connect as startTls } from 'node:tls'
import { fail, ok, type Result } from '../core/result.ts'
import type { ClientIdentity } from '../ports.ts'

/** The two ways to the outside. The real ones below; a conformance run brings some that record instead of dialling. */
export interface Network {
  /** Begins a TCP connection to an address (never a name): `ready` (default `connect`) or `error` follows. */
  tcp(address: string, port: number): Socket
  readonly ready?: string
  /** The address that a ready socket leads to; default its `remoteAddress`. */
  peer?(socket: Socket): string | undefined
  /** Begins the handshake on a connected socket: `secureConnect` or `error` follows. `client`: of `createClientIdentity`. */
  tls(socket: Socket, hostname: string, literal: boolean, client?: ClientIdentity | null): Socket
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
    tls(socket, hostname, literal, client = null) {
      const tls: ConnectionOptions = {
        socket,
        secureContext: client === null ? secureContext : contextOf(client),
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

/** PEM texts. `ca` takes the place of the built-in authorities. */
export interface ClientCertificate {
  readonly cert: string
  readonly key: string
  readonly ca: string | null
}

/** Fails with OpenSSL's reason, which names no key material, when the texts are no certificate and key that belong together. */
export function createClientIdentity(id: string, { cert, key, ca }: ClientCertificate): Result<ClientIdentity> {
  try {
    const context = createSecureContext({ minVersion: 'TLSv1.2', cert, key, ...(ca === null ? {} : { ca }) })
    const identity = { id }
    contexts.set(identity, context)
    return ok(identity)
  } catch (error) {
    const { reason, code } = error as { reason?: unknown; code?: unknown }
    return fail(`certificate and key can not be used (${String(reason ?? code ?? 'unknown reason')})`)
  }
}

const contexts = new WeakMap<ClientIdentity, SecureContext>()

function contextOf(client: ClientIdentity): SecureContext {
  const context = contexts.get(client)
  if (context === undefined) throw new TypeError('an identity of another maker')
  return context
}
