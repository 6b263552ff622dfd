import { createHmac } from 'node:crypto'

/**
 * Body of every event, JSON of a fixed layout, so that a receiver reads it without parsing:
 * `{"n":"0000042","k":"0007","at":"0000012345.678","pad":"xxx…"}`. `n`: number of the delivery, `k`: ordering key,
 * `at`: when it was produced, `monoMs`.
 */
export const layout = { n: [6, 7], k: [20, 4], at: [32, 14] } as const

export type Fill = (n: number, key: number, atMs: number) => Buffer

export function createBodies(bytes: number): Fill {
  const head = '{"n":"0000000","k":"0000","at":"0000000000.000","pad":"'
  const template = Buffer.from(`${head}${'x'.repeat(Math.max(0, bytes - head.length - 2))}"}`)
  return (n, key, atMs) => {
    const body = Buffer.from(template)
    body.write(String(n).padStart(layout.n[1], '0'), layout.n[0], 'latin1')
    body.write(String(key).padStart(layout.k[1], '0'), layout.k[0], 'latin1')
    body.write(atMs.toFixed(3).padStart(layout.at[1], '0'), layout.at[0], 'latin1')
    return body
  }
}

/** Whole number written in ASCII digits. */
export function digits(bytes: Buffer, at: number, length: number): number {
  let value = 0
  for (let i = at; i < at + length; i++) value = value * 10 + (bytes[i] as number) - 48
  return value
}

/** `digits` with a point and three decimals: the `at` of a body. */
export function instant(bytes: Buffer, at: number): number {
  return digits(bytes, at, 10) + digits(bytes, at + 11, 3) / 1000
}

/** The headers a Standard Webhooks sender can't do without, in the flat form that undici takes fastest. */
export function signedHeaders(key: Buffer, id: string, body: Buffer): string[] {
  const timestamp = String(Math.floor(Date.now() / 1000))
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')
  return [
    'content-type',
    'application/json',
    'user-agent',
    'raw',
    'webhook-id',
    id,
    'webhook-timestamp',
    timestamp,
    'webhook-signature',
    `v1,${signature}`,
  ]
}
