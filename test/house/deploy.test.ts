import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { kafkaImage } from '../../src/broker/docker.ts'
import { commitSlackMs, exitSlackMs } from '../../src/config/checks.ts'
import { loadConfig } from '../../src/config.ts'
import { durationMs } from './duration.ts'
import { paths, read } from './files.ts'

interface Service {
  readonly image: string
  readonly build?: string
  readonly command?: readonly string[]
  readonly ports?: readonly string[]
  readonly environment: Readonly<Record<string, string | number>>
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly stop_grace_period?: string
  readonly volumes?: readonly string[]
}

const compose = parse(read('docker-compose.yml')) as {
  services: Readonly<Record<'kafka' | 'topics' | 'hooktide', Service>>
  volumes: object
}
const { kafka, topics, hooktide } = compose.services
const { config } = loadConfig()
const dockerfile = read('Dockerfile')

/** Stop admitting, drain, one whole POST begun at the last moment, its commit, leaving. `connect + read` is the total. */
const needMs = config.shutdown.drainMs + config.http.totalTimeoutMs + commitSlackMs + exitSlackMs

test('the default grace period is longer than a stop can take', () => {
  expect(config.http.totalTimeoutMs).toBeGreaterThan(config.http.connectTimeoutMs)
  expect(config.shutdown.gracePeriodMs).toBeGreaterThan(needMs)
})

test('compose grants Hooktide the configured grace period', () => {
  expect(durationMs(hooktide.stop_grace_period)).toBe(config.shutdown.gracePeriodMs)
})

test('Kubernetes manifests in the docs grant the configured grace period, and probe what there is', () => {
  const pods = [...read('docs/operations.md').matchAll(/^```yaml\n([\s\S]*?)^```/gm)]
    .map((match) => parse(match[1] as string) as Deployment)
    .filter(({ kind }) => kind === 'Deployment')
    .map(({ spec }) => spec.template.spec)
  expect(pods.length).toBeGreaterThan(0)
  for (const { terminationGracePeriodSeconds, containers } of pods) {
    expect(terminationGracePeriodSeconds * 1000).toBeGreaterThanOrEqual(config.shutdown.gracePeriodMs)
    const [container] = containers
    expect(container?.livenessProbe.httpGet).toEqual({ path: '/healthz', port: 9400 })
    expect(container?.readinessProbe.httpGet).toEqual({ path: '/readyz', port: 9400 })
    const env = Object.fromEntries(container?.env.map(({ name, value }) => [name, value ?? 'x']) ?? [])
    expect(loadConfig({ env }).warnings).toEqual([])
    expect(env.HOOKTIDE_OBSERVE_HOST).toBe('0.0.0.0')
  }
})

interface Deployment {
  readonly kind: string
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly terminationGracePeriodSeconds: number
        readonly containers: readonly {
          readonly livenessProbe: { readonly httpGet: object }
          readonly readinessProbe: { readonly httpGet: object }
          readonly env: readonly { readonly name: string; readonly value?: string }[]
        }[]
      }
    }
  }
}

test('compose runs the Kafka of broker/pom.xml, with every setting that its image needs', () => {
  expect(kafka.image).toBe(kafkaImage)
  const { KAFKA_LISTENERS, KAFKA_ADVERTISED_LISTENERS, KAFKA_LISTENER_SECURITY_PROTOCOL_MAP } = kafka.environment
  const names = (text: string | number | undefined) =>
    String(text)
      .split(',')
      .map((part) => part.split(':')[0])
  expect(names(KAFKA_LISTENER_SECURITY_PROTOCOL_MAP)).toEqual(names(KAFKA_LISTENERS))
  for (const name of names(KAFKA_ADVERTISED_LISTENERS)) expect(names(KAFKA_LISTENERS)).toContain(name)
  const volume = (kafka.volumes?.[0] ?? '').split(':')
  expect(volume[1]).toBe(kafka.environment.KAFKA_LOG_DIRS)
  expect(Object.keys(compose.volumes)).toEqual([volume[0]])
})

test('compose sets only what Hooktide reads, and where Kafka listens inside', () => {
  const inside = /INSIDE:\/\/(kafka:\d+)/.exec(String(kafka.environment.KAFKA_ADVERTISED_LISTENERS))?.[1]
  for (const { environment } of [topics, hooktide]) {
    expect(environment.KAFKA_BROKERS).toBe(inside)
    const env = Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, shell(String(value), '')]))
    expect(loadConfig({ env }).warnings).toEqual([])
  }
  const env = Object.fromEntries(
    Object.entries(hooktide.environment).map(([name, value]) => [name, shell(String(value), 'k1:x')]),
  )
  expect(loadConfig({ env }).config.secrets.masterKeyRef).toBe('env:HOOKTIDE_SECRET_MASTER_KEY')
})

/** `${X:+then}` and `${X:-else}` as compose reads them, with X being `value`. */
function shell(text: string, value: string): string {
  return text.replace(/\$\{\w+:([+-])([^}]*)\}/g, (_, kind, word) =>
    kind === '+' ? (value === '' ? '' : word) : value === '' ? word : value,
  )
}

test('compose starts Hooktide when the topics are there, and those when Kafka serves', () => {
  expect(topics.depends_on).toEqual({ kafka: { condition: 'service_healthy' } })
  expect(hooktide.depends_on).toEqual({ topics: { condition: 'service_completed_successfully' } })
  expect(topics.command).toEqual(['topics', 'apply'])
  expect(hooktide.command).toEqual(['up'])
  expect([topics.image, topics.build]).toEqual([hooktide.image, hooktide.build])
})

test('the image listens where it says, and everything it copies exists', () => {
  const port = String(config.observe.port)
  expect(dockerfile).toContain(`EXPOSE ${port}`)
  expect(dockerfile).toContain(`HOOKTIDE_OBSERVE_PORT=${port}`)
  expect(hooktide.ports).toEqual([`127.0.0.1:${port}:${port}`])
  const copied = [...dockerfile.matchAll(/^COPY (.+) \S+$/gm)].flatMap((match) => (match[1] as string).split(' '))
  const sent = [...read('.dockerignore').matchAll(/^!(.+)$/gm)].map((match) => match[1])
  expect([...copied].sort()).toEqual([...sent].sort())
  for (const name of copied)
    expect(
      paths.some((path) => path === name || path.startsWith(`${name}/`)),
      name,
    ).toBe(true)
})

test('the image runs as nobody in particular, drains at SIGTERM and says how it is', () => {
  expect(dockerfile).toMatch(/^USER 1000:1000$/m)
  expect(dockerfile).toMatch(/^STOPSIGNAL SIGTERM$/m)
  expect(dockerfile).toMatch(/^HEALTHCHECK [\s\S]*\/healthz/m)
  expect(dockerfile).toMatch(/npm ci --omit=dev --ignore-scripts/)
  // An exec form: a shell in between would keep the signal to itself.
  expect(dockerfile).toMatch(/^ENTRYPOINT \["node", "src\/main\.ts"\]$/m)
})
