import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { startApiRole } from '../../src/app/api.ts'
import { loadConfig } from '../../src/config.ts'
import { clusterOf, hooktide } from '../cli/support.ts'
import { realClock } from '../support/clock.ts'
import { notingObserver } from '../support/kafka.ts'

/** The environment of a command that logs in as `user`. */
export function envOf(user: string, brokers: string, ca: string, more: Record<string, string>): Record<string, string> {
  const file = join(tmpdir(), `hooktide-ca-${process.pid}-${user}.pem`)
  writeFileSync(file, ca)
  onTestFinished(() => rmSync(file))
  return {
    KAFKA_BROKERS: brokers,
    HOOKTIDE_KAFKA_SSL_ENABLED: 'true',
    HOOKTIDE_KAFKA_SSL_CA: file,
    HOOKTIDE_KAFKA_SASL_MECHANISM: 'plain',
    HOOKTIDE_KAFKA_SASL_USERNAME: user,
    HOOKTIDE_KAFKA_SASL_PASSWORD_REF: 'env:PASSWORD',
    PASSWORD: `${user}-plain`,
    HOOKTIDE_SECRETS_MASTER_KEY_REF: 'env:MASTER',
    MASTER: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    ...more,
  }
}

/** Everything an operator does, reading and writing each topic there is. */
const commands: readonly (readonly string[])[] = [
  ['subscriptions', 'add', '--id', 'seen', '--url', 'https://example.com/hook', '--secret', 'kafka:new'],
  ['subscriptions', 'list'],
  ['produce', '--type', 'a.b', '--key', 'k', '--data', '{}'],
  ['replay', '--subscription', 'seen', '--dry-run'],
  ['status'],
  ['lines', 'list'],
  ['dead', 'list'],
  ['dead', 'redrive', '--all'],
  ['tiers', 'pause', 'retry-1s'],
  ['tiers', 'list'],
  ['control', 'list'],
  ['control', 'clear', 'tier:retry-1s'],
  ['jobs', 'list'],
  ['subscriptions', 'remove', 'seen'],
]

/** What was refused; empty: nothing. The endpoint's name may be unknown here, which is a note. */
export async function runCommands(env: Record<string, string>): Promise<string[]> {
  const refused: string[] = []
  for (const args of commands) {
    const { code, err } = await hooktide([...args], { env })
    if (code !== 0) refused.push(`${args.join(' ')}: ${code} ${err}`)
  }
  return refused
}

/** The same through an API that has logged in with `env`. */
export async function runThroughApi(env: Record<string, string>): Promise<string[]> {
  const { config } = loadConfig({ env: { ...env, HOOKTIDE_API_LISTEN: '127.0.0.1:0', HOOKTIDE_API_AUTH: 'off' } })
  const cluster = clusterOf(env)
  const options = {
    ...{ config, env, clock: realClock, observer: notingObserver() },
    roles: { router: false, deliverer: false },
    onFatal: () => undefined,
  }
  const api = await startApiRole(options as never, cluster.kafka, cluster.admin)
  try {
    return await runCommands({ HOOKTIDE_URL: `http://127.0.0.1:${api.port}` })
  } finally {
    await api.close()
    await cluster.close()
  }
}
