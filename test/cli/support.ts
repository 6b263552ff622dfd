import { onTestFinished } from 'vitest'
import { createCallApi } from '../../src/app/call-api.ts'
import { connectKafka } from '../../src/app/connect-kafka.ts'
import { createEndpointTools } from '../../src/app/endpoint-tools.ts'
import { openObjects } from '../../src/app/object-store.ts'
import { createSecretTools } from '../../src/app/secret-tools.ts'
import { createStateTools } from '../../src/app/state-tools.ts'
import type { CliDeps, Output } from '../../src/cli/deps.ts'
import { runCli } from '../../src/cli/run.ts'
import { loadConfig } from '../../src/config.ts'
import { parseHosts, type Query, Resolver } from '../../src/http/resolver.ts'
import type { Cluster } from '../../src/operations/cluster.ts'
import { realClock } from '../support/clock.ts'
import { addresses, notingObserver } from '../support/kafka.ts'

export interface CliResult {
  readonly code: number
  readonly out: string
  readonly err: string
}

let count = 0

/** A terminal-less call of `hooktide` in this process. */
export async function hooktide(
  args: readonly string[],
  given: Partial<CliDeps> & { input?: string } = {},
): Promise<CliResult> {
  const { input, ...deps } = given
  let code = 0
  const [out, err] = [sink(), sink()]
  const env = deps.env ?? {}
  await runCli(args, {
    env,
    stdin: lines(input ?? ''),
    stdout: out.output,
    stderr: err.output,
    clock: realClock,
    signal: new AbortController().signal,
    runtime: { node: '24.0.0', platform: 'linux x64' },
    connect: async (config) => connectKafka(config, env, { clock: realClock, observer: notingObserver() }),
    secrets: createSecretTools(env, realClock),
    state: (config) => createStateTools(config, env, { clock: realClock, observer: notingObserver() }),
    endpoints: testEndpoints(env),
    objects: (config) => openObjects(config, env, realClock),
    callApi: createCallApi(realClock),
    fetchText: async (url) => (await fetch(url)).text(),
    startService: async () => undefined,
    runDemo: async () => true,
    rehearse: async () => {
      throw new Error('not played here')
    },
    ...deps,
    setExitCode(value) {
      code = value
    },
  })
  return { code, out: out.text(), err: err.text() }
}

/** The real ones, but names are answered here: tests ask no name server. `private.test` leads inside. */
function testEndpoints(env: CliDeps['env']): CliDeps['endpoints'] {
  const query: Query = async (name, family) =>
    family === 6 ? [] : [{ address: name === 'private.test' ? '10.0.0.5' : '93.184.215.14', ttlS: 60 }]
  return createEndpointTools(env, realClock, new Resolver({ clock: realClock, query, hosts: parseHosts('') }))
}

export function sink(isTTY = false): { readonly output: Output; text(): string } {
  const parts: string[] = []
  return { output: { write: (data) => void parts.push(String(data)), isTTY, columns: 100 }, text: () => parts.join('') }
}

async function* lines(input: string): AsyncGenerator<string> {
  yield input
}

/** The environment of a Hooktide of this test alone, on the shared broker, its topics created. */
export async function ownWorld(more: Record<string, string> = {}): Promise<Record<string, string>> {
  const name = `cli-${process.pid}-${Date.now().toString(36)}-${++count}`
  const env = {
    KAFKA_BROKERS: (await addresses()).join(','),
    HOOKTIDE_TOPICS_PREFIX: `${name}.`,
    HOOKTIDE_TOPICS_EVENTS: `${name}.events`,
    HOOKTIDE_TOPICS_LANES: '2',
    HOOKTIDE_KAFKA_GROUP_PREFIX: `${name}.`,
    ...more,
  }
  const applied = await hooktide(['topics', 'apply'], { env })
  if (applied.code !== 0) throw new Error(applied.err + applied.out)
  return env
}

/** A client of that world; close it. */
export function clusterOf(env: Record<string, string>): Cluster {
  return connectKafka(loadConfig({ env }).config, env, { clock: realClock, observer: notingObserver() })
}

/** Something to be undone at the end of the test. */
export function atEnd(fn: () => unknown): void {
  onTestFinished(async () => {
    await fn()
  })
}
