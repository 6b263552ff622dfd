/**
 * What KEDA 2.12 and later, and the Prometheus operator, take of the fields that our manifests may use: kubernetes-validate knows
 * only the resources of Kubernetes itself. Strict, so that a field that is misspelt is one that is unknown.
 * Sources: KEDA's ScaledObject specification and prometheus scaler; the operator's API reference; HorizontalPodAutoscaler v2.
 */
const count = { type: 'integer', minimum: 0 }
const name = { type: 'string', minLength: 1, maxLength: 253 }
const duration = { type: 'string', pattern: '^([0-9]+(ms|s|m|h|d))+$' }

function object(properties: Readonly<Record<string, unknown>>, required: readonly string[] = []) {
  return { type: 'object', properties, required, additionalProperties: false }
}

const labels = { type: 'object', additionalProperties: { type: 'string', maxLength: 63 } }

function resource(apiVersion: string, kind: string, spec: object) {
  return object(
    {
      apiVersion: { const: apiVersion },
      kind: { const: kind },
      metadata: object({ name, namespace: name, labels, annotations: labels }, ['name']),
      spec,
    },
    ['apiVersion', 'kind', 'metadata', 'spec'],
  )
}

const scaling = object({
  stabilizationWindowSeconds: { ...count, maximum: 3600 },
  selectPolicy: { enum: ['Max', 'Min', 'Disabled'] },
  policies: {
    type: 'array',
    minItems: 1,
    items: object(
      {
        type: { enum: ['Pods', 'Percent'] },
        value: { ...count, minimum: 1 },
        periodSeconds: { ...count, minimum: 1, maximum: 1800 },
      },
      ['type', 'value', 'periodSeconds'],
    ),
  },
})

/** Every value is a text there, numbers too. */
const text = { type: 'string', minLength: 1 }
const number = { type: 'string', pattern: '^[0-9]+([.][0-9]+)?$' }
const prometheus = object(
  {
    serverAddress: { type: 'string', pattern: '^https?://' },
    query: text,
    threshold: number,
    activationThreshold: number,
    namespace: text,
    ignoreNullValues: { enum: ['true', 'false'] },
    unsafeSsl: { enum: ['true', 'false'] },
    timeout: number,
  },
  ['serverAddress', 'query', 'threshold'],
)

export const scaledObject = resource(
  'keda.sh/v1alpha1',
  'ScaledObject',
  object(
    {
      scaleTargetRef: object({ apiVersion: text, kind: text, name, envSourceContainerName: name }, ['name']),
      pollingInterval: count,
      cooldownPeriod: count,
      initialCooldownPeriod: count,
      idleReplicaCount: count,
      minReplicaCount: count,
      maxReplicaCount: count,
      fallback: object({ failureThreshold: count, replicas: count }, ['failureThreshold', 'replicas']),
      advanced: object({
        restoreToOriginalReplicaCount: { type: 'boolean' },
        horizontalPodAutoscalerConfig: object({ name, behavior: object({ scaleUp: scaling, scaleDown: scaling }) }),
      }),
      triggers: {
        type: 'array',
        minItems: 1,
        items: object(
          {
            type: { const: 'prometheus' },
            name,
            metricType: { enum: ['AverageValue', 'Value'] },
            useCachedMetrics: { type: 'boolean' },
            authenticationRef: object(
              { name, kind: { enum: ['TriggerAuthentication', 'ClusterTriggerAuthentication'] } },
              ['name'],
            ),
            metadata: prometheus,
          },
          ['type', 'metadata'],
        ),
      },
    },
    ['scaleTargetRef', 'triggers'],
  ),
)

export const serviceMonitor = resource(
  'monitoring.coreos.com/v1',
  'ServiceMonitor',
  object(
    {
      jobLabel: text,
      selector: object({ matchLabels: labels }),
      namespaceSelector: object({ any: { type: 'boolean' }, matchNames: { type: 'array', items: name } }),
      endpoints: {
        type: 'array',
        minItems: 1,
        items: object(
          {
            port: name,
            path: { type: 'string', pattern: '^/' },
            scheme: text,
            interval: duration,
            scrapeTimeout: duration,
          },
          ['port'],
        ),
      },
    },
    ['selector', 'endpoints'],
  ),
)
