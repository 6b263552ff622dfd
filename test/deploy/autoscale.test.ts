import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { paths, read } from '../house/files.ts'
import { scaledObject, serviceMonitor } from './custom-resources.ts'

const ajv = new Ajv2020({ allErrors: true })
const checks = { ScaledObject: ajv.compile(scaledObject), ServiceMonitor: ajv.compile(serviceMonitor) }
type Kind = keyof typeof checks

const files = paths.filter((path) => /^deploy\/kubernetes\/autoscale\/(?!kustomization).*\.yaml$/.test(path))
const resources = files.flatMap((path) => parseAllDocuments(read(path)).map((document) => document.toJS()))

function problems(resource: { kind: string }): string[] {
  const check = checks[resource.kind as Kind]
  return check(resource) ? [] : (check.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

describe('what KEDA and the Prometheus operator are given', () => {
  test('is of kinds that are checked, all of it', () => {
    expect(resources.map(({ kind }) => kind).sort()).toEqual(['ScaledObject', 'ServiceMonitor'])
  })

  test.each(resources.map((resource) => [resource.kind, resource] as const))(
    '%s: their schema takes it',
    (_, resource) => {
      expect(problems(resource)).toEqual([])
    },
  )

  type Spec = Record<string, never> & {
    triggers: { metadata: Record<string, unknown>; metricType?: string }[]
    endpoints: Record<string, unknown>[]
  }
  const mistakes: readonly (readonly [string, Kind, (spec: Spec) => void])[] = [
    [
      'a number where a text must be',
      'ScaledObject',
      ({ triggers }) => Object.assign(triggers[0]?.metadata ?? {}, { threshold: 500 }),
    ],
    ['a field that there is not', 'ScaledObject', (spec) => Object.assign(spec, { maxReplicas: 3 })],
    ['no server to ask', 'ScaledObject', ({ triggers }) => delete triggers[0]?.metadata.serverAddress],
    [
      'a metric type of the CPU scaler',
      'ScaledObject',
      ({ triggers }) => Object.assign(triggers[0] ?? {}, { metricType: 'Utilization' }),
    ],
    [
      'an interval without a unit',
      'ServiceMonitor',
      ({ endpoints }) => Object.assign(endpoints[0] ?? {}, { interval: '15' }),
    ],
  ]
  test.each(mistakes)('%s is found', (_, kind, spoil) => {
    const copy = structuredClone(resources.find((resource) => resource.kind === kind))
    spoil(copy.spec)
    expect(problems(copy).length).toBeGreaterThan(0)
  })
})
