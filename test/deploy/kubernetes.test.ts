import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { commitSlackMs, exitSlackMs } from '../../src/config/checks.ts'
import { loadConfig } from '../../src/config.ts'
import { paths, read, root } from '../house/files.ts'

interface Container {
  readonly image: string
  readonly args: readonly string[]
  readonly env: readonly {
    readonly name: string
    readonly value?: string
    readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } }
  }[]
  readonly ports?: readonly { readonly containerPort: number }[]
  readonly startupProbe?: { readonly periodSeconds: number; readonly failureThreshold: number }
  readonly livenessProbe?: { readonly httpGet: { readonly path: string; readonly port: number } }
  readonly readinessProbe?: { readonly httpGet: { readonly path: string; readonly port: number } }
  readonly securityContext: object
  readonly resources: { readonly limits: { readonly cpu?: string; readonly memory: string } }
}

interface Manifest {
  readonly path: string
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Record<string, string> }
  readonly data?: Record<string, string>
  readonly stringData?: Record<string, string>
  readonly spec: {
    readonly selector?: { readonly matchLabels: Record<string, string> } & Record<string, string>
    readonly template: {
      readonly metadata: { readonly labels: Record<string, string> }
      readonly spec: {
        readonly terminationGracePeriodSeconds: number
        readonly securityContext: object
        readonly enableServiceLinks: boolean
        readonly containers: readonly [Container]
      }
    }
    readonly strategy?: { readonly rollingUpdate: object }
    readonly maxUnavailable?: number
    readonly minReplicaCount?: number
    readonly maxReplicaCount?: number
    readonly scaleTargetRef?: { readonly kind: string; readonly name: string }
    readonly triggers?: readonly { readonly metricType: string; readonly metadata: Record<string, string> }[]
    readonly endpoints?: readonly { readonly port: string }[]
    readonly ports?: readonly { readonly name: string; readonly port: number }[]
  }
}

const files = paths.filter((path) => path.startsWith('deploy/kubernetes/') && path.endsWith('.yaml'))
const manifests = files
  .filter((path) => !path.endsWith('kustomization.yaml'))
  .flatMap((path) => parseAllDocuments(read(path)).map((document): Manifest => ({ path, ...document.toJS() })))
const of = (kind: string) => manifests.filter((manifest) => manifest.kind === kind)
const one = (kind: string) => {
  expect(of(kind), kind).toHaveLength(1)
  return of(kind)[0] as Manifest
}
const { config, warnings } = loadConfig({ text: one('ConfigMap').data?.['hooktide.yaml'] ?? '' })
const deployments = of('Deployment')

describe('manifests', () => {
  test('are there for both roles, for the topics, for probes and for scaling', () => {
    expect(deployments.map(({ metadata }) => metadata.name).sort()).toEqual(['hooktide-deliverer', 'hooktide-router'])
    const kinds = ['ConfigMap', 'Secret', 'Job', 'Service', 'PodDisruptionBudget', 'ServiceMonitor', 'ScaledObject']
    for (const kind of kinds) expect(of(kind).length, kind).toBeGreaterThan(0)
  })

  test('the configuration is one that Hooktide takes without a warning', () => {
    expect(warnings).toEqual([])
    expect(config.observe.host).toBe('0.0.0.0')
  })

  test.each(deployments.map((manifest) => [manifest.metadata.name, manifest] as const))(
    '%s grants the grace period, which is above the lease; probes what there is; runs as nobody in particular',
    (name, { spec, metadata }) => {
      const pod = spec.template.spec
      const graceMs = pod.terminationGracePeriodSeconds * 1_000
      expect(graceMs).toBeGreaterThanOrEqual(config.shutdown.gracePeriodMs)
      expect(graceMs).toBeGreaterThan(config.kafka.sessionTimeoutMs)
      expect(graceMs).toBeGreaterThan(
        config.shutdown.drainMs + config.http.totalTimeoutMs + commitSlackMs + exitSlackMs,
      )
      const [container] = pod.containers
      const { port } = config.observe
      expect(container.ports?.map(({ containerPort }) => containerPort)).toEqual([port])
      expect(container.livenessProbe?.httpGet).toEqual({ path: '/healthz', port })
      expect(container.readinessProbe?.httpGet).toEqual({ path: '/readyz', port })
      const { periodSeconds = 0, failureThreshold = 0 } = container.startupProbe ?? {}
      expect(periodSeconds * failureThreshold).toBeGreaterThan(60)
      expect(container.args).toEqual(['up', '--roles', name.replace('hooktide-', '')])
      expect(spec.strategy?.rollingUpdate).toEqual({ maxUnavailable: 1, maxSurge: 0 })
      expect(container.resources.limits.cpu).toBeUndefined()
      expect(metadata.labels).toMatchObject(spec.selector?.matchLabels ?? { none: '' })
    },
  )

  test('every pod is restricted, has the configuration, and what it takes of secrets is in the example', () => {
    const secret = one('Secret')
    for (const { spec, path } of [...deployments, ...of('Job')]) {
      const { securityContext, containers, enableServiceLinks } = spec.template.spec
      expect(securityContext, path).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
      expect(containers[0].securityContext, path).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      // A service named hooktide would set variables that look like our keys.
      expect(enableServiceLinks, path).toBe(false)
      expect(containers[0].env).toContainEqual({ name: 'HOOKTIDE_CONFIG', value: '/etc/hooktide/hooktide.yaml' })
      for (const { valueFrom } of containers[0].env) {
        if (valueFrom === undefined) continue
        expect(valueFrom.secretKeyRef.name).toBe(secret.metadata.name)
        expect(Object.keys(secret.stringData ?? {})).toContain(valueFrom.secretKeyRef.key)
      }
    }
    const version = (JSON.parse(read('package.json')) as { version: string }).version
    const images = new Set([...deployments, ...of('Job')].map(({ spec }) => spec.template.spec.containers[0].image))
    expect([...images]).toEqual([`hooktide:${version}`])
  })

  test('selectors find the pods they are about', () => {
    const pods = deployments.map(({ spec }) => spec.template.metadata.labels)
    const found = (labels: Record<string, string>) =>
      pods.filter((pod) => Object.entries(labels).every(([key, value]) => pod[key] === value)).length
    for (const { spec } of deployments) expect(found(spec.selector?.matchLabels ?? {})).toBe(1)
    for (const { spec } of of('PodDisruptionBudget')) {
      expect(found(spec.selector?.matchLabels ?? {})).toBe(1)
      expect(spec.maxUnavailable).toBe(1)
    }
    expect(of('PodDisruptionBudget')).toHaveLength(deployments.length)
    const service = one('Service')
    expect(found(service.spec.selector ?? {})).toBe(deployments.length)
    const monitor = one('ServiceMonitor')
    expect(service.metadata.labels).toMatchObject(monitor.spec.selector?.matchLabels ?? { none: '' })
    expect(service.spec.ports?.map(({ name }) => name)).toEqual(monitor.spec.endpoints?.map(({ port }) => port))
  })

  test('kustomization lists every file but the example', () => {
    const listed = (path: string) => (parse(read(path)) as { resources: string[] }).resources
    const all = [
      ...listed('deploy/kubernetes/kustomization.yaml'),
      ...listed('deploy/kubernetes/autoscale/kustomization.yaml').map((name) => `autoscale/${name}`),
      'secret.example.yaml',
    ]
    expect(all.map((name) => `deploy/kubernetes/${name}`).sort()).toEqual(
      [...new Set(manifests.map(({ path }) => path))].sort(),
    )
  })
})

test('the scaler asks for what is due, and never for more deliverers than there are lanes', () => {
  const { spec } = one('ScaledObject')
  expect(spec.maxReplicaCount).toBe(config.topics.lanes)
  expect(spec.minReplicaCount).toBeGreaterThan(0)
  expect(deployments.map(({ kind, metadata }) => ({ kind, name: metadata.name }))).toContainEqual(spec.scaleTargetRef)
  const queries = spec.triggers?.map(({ metadata }) => metadata.query)
  expect(queries).toEqual(['sum(hooktide_ready_backlog)', '100 * sum(hooktide_executor_utilisation)'])
  // With a `fallback` KEDA takes no other type in every version.
  expect(spec.triggers?.every(({ metricType }) => metricType === 'AverageValue')).toBe(true)
})

/** pip install --target .hooktide/kubernetes-validate kubernetes-validate: the schemas of Kubernetes come with it. */
const site = join(root, '.hooktide', 'kubernetes-validate')
const missing = !existsSync(site)
if (missing) console.warn('skipped: kubernetes-validate is not in .hooktide/kubernetes-validate (see .ci/run)')
test.skipIf(missing)('the schemas of Kubernetes take every manifest of its own, strictly', () => {
  const own = files.filter((path) => !path.includes('kustomization') && !path.includes('/autoscale/'))
  expect(own.length).toBeGreaterThan(5)
  const { stdout, stderr, status } = spawnSync('python3', ['-m', 'kubernetes_validate', '--strict', ...own], {
    cwd: root,
    encoding: 'utf8',
    timeout: 120_000,
    env: { PYTHONPATH: site, PATH: '/usr/local/bin:/usr/bin:/bin' },
  })
  expect({ status, text: status === 0 ? '' : stdout + stderr }).toEqual({ status: 0, text: '' })
  expect(`${stdout}${stderr}`.match(/ passed /g)?.length).toBeGreaterThanOrEqual(own.length)
})
