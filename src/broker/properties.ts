import type { BrokerSecurity } from './options.ts'

export interface LocalLayout {
  readonly logDir: string
  readonly plainPort: number
  readonly controllerPort: number
  /** Port per secure listener's name. */
  readonly securePorts: Readonly<Record<string, number>>
  readonly tlsFiles?: { readonly ca: string; readonly keystore: string }
}

/** Settings of a one-node broker for development and tests, whoever runs it. */
export const singleNode: Readonly<Record<string, string>> = {
  'process.roles': 'broker,controller',
  'node.id': '1',
  'controller.listener.names': 'CONTROLLER',
  'num.partitions': '12',
  'auto.create.topics.enable': 'false',
  'delete.topic.enable': 'true',
  'offsets.topic.replication.factor': '1',
  'offsets.topic.num.partitions': '10',
  'transaction.state.log.replication.factor': '1',
  'transaction.state.log.min.isr': '1',
  'transaction.state.log.num.partitions': '10',
  'share.coordinator.state.topic.replication.factor': '1',
  'share.coordinator.state.topic.min.isr': '1',
  'group.initial.rebalance.delay.ms': '0',
  // After a crash the controller waits this long before it lets the broker in again (default 9 s).
  'broker.session.timeout.ms': '3000',
  'broker.heartbeat.interval.ms': '500',
}

/** server.properties of a local broker: a plain listener on loopback, and what `security` adds. */
export function serverProperties(
  layout: LocalLayout,
  security: BrokerSecurity | undefined,
  overrides: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const secure = security?.listeners ?? []
  const at = (name: string) => `${name}://127.0.0.1:${layout.securePorts[name] ?? 0}`
  const listeners = [`PLAINTEXT://127.0.0.1:${layout.plainPort}`, ...secure.map((listener) => at(listener.name))]
  const properties: Record<string, string> = {
    ...singleNode,
    'controller.quorum.voters': `1@127.0.0.1:${layout.controllerPort}`,
    listeners: [...listeners, `CONTROLLER://127.0.0.1:${layout.controllerPort}`].join(','),
    'advertised.listeners': listeners.join(','),
    'inter.broker.listener.name': 'PLAINTEXT',
    'listener.security.protocol.map': [
      'CONTROLLER:PLAINTEXT',
      'PLAINTEXT:PLAINTEXT',
      ...secure.map((listener) => `${listener.name}:${listener.protocol}`),
    ].join(','),
    'log.dirs': layout.logDir,
  }
  if (security?.authorizer === true) {
    properties['authorizer.class.name'] = 'org.apache.kafka.metadata.authorizer.StandardAuthorizer'
    properties['super.users'] = 'User:ANONYMOUS'
    properties['allow.everyone.if.no.acl.found'] = 'false'
  }
  for (const listener of secure) {
    const prefix = `listener.name.${listener.name.toLowerCase()}`
    if (listener.protocol !== 'SASL_PLAINTEXT' && layout.tlsFiles !== undefined) {
      properties[`${prefix}.ssl.keystore.type`] = 'PEM'
      properties[`${prefix}.ssl.keystore.location`] = layout.tlsFiles.keystore
      properties[`${prefix}.ssl.truststore.type`] = 'PEM'
      properties[`${prefix}.ssl.truststore.location`] = layout.tlsFiles.ca
      properties[`${prefix}.ssl.client.auth`] = listener.clientCertificate === true ? 'required' : 'none'
    }
    if (listener.mechanisms === undefined) continue
    properties[`${prefix}.sasl.enabled.mechanisms`] = listener.mechanisms.join(',')
    for (const mechanism of listener.mechanisms) {
      properties[`${prefix}.${mechanism.toLowerCase()}.sasl.jaas.config`] = jaas(mechanism, security)
    }
  }
  return { ...properties, ...overrides }
}

function jaas(mechanism: string, security: BrokerSecurity | undefined): string {
  if (mechanism !== 'PLAIN') return 'org.apache.kafka.common.security.scram.ScramLoginModule required;'
  const users = (security?.plain ?? []).map(({ user, password }) => `user_${user}="${password}"`)
  return `org.apache.kafka.common.security.plain.PlainLoginModule required ${users.join(' ')};`
}

/** Java's properties syntax; our keys are plain, values may hold backslashes. */
export function propertiesText(properties: Readonly<Record<string, string>>): string {
  return Object.entries(properties)
    .map(([key, value]) => `${key}=${value.replaceAll('\\', '\\\\')}\n`)
    .join('')
}
