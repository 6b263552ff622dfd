import { isIP } from 'node:net'

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** `127.0.0.1:9401`, `[::1]:9401`, `0.0.0.0:9401`; null: it is none. Port 0: any free one. */
export function listenAddress(text: string): ListenAddress | null {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(text)
  const port = Number(match?.[3] ?? Number.NaN)
  const host = match?.[1] ?? match?.[2]
  if (host === undefined || !(port <= 65_535) || (match?.[1] !== undefined && isIP(host) !== 6)) return null
  return { host, port }
}

/** Only this machine can reach it. A name is believed only where it is `localhost`. */
export function isLoopback({ host }: ListenAddress): boolean {
  if (isIP(host) === 4) return host.startsWith('127.')
  return host === '::1' || host.toLowerCase() === 'localhost'
}
