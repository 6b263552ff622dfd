import type { BrokerSecurity } from '../../src/broker/options.ts'
import { KafkaTopicAdmin } from '../../src/kafka/admin.ts'
import { KafkaClient, type KafkaOptions } from '../../src/kafka/client.ts'
import { createKafka } from '../../src/kafka/kafka.ts'
import { library } from '../../src/kafka/load.ts'
import { realClock } from '../support/clock.ts'
import type { Acl } from './roles.ts'

export const deps = {
  clock: realClock,
  observer: { log: () => undefined, count: () => undefined, time: () => undefined },
}

/** Our clients as one user on one listener. */
export function clientsOf(options: Pick<KafkaOptions, 'brokers' | 'ssl' | 'sasl'>) {
  const whole: KafkaOptions = { clientId: 'security-test', deadlineMs: 8000, ...options }
  const kafka = createKafka(whole, deps)
  const admin = new KafkaTopicAdmin(new KafkaClient(whole, deps))
  return {
    kafka,
    admin,
    close: async () => {
      await Promise.all([kafka.close(), admin.close()])
    },
  }
}

/** Grants as the super user of the plain listener. */
export async function grant(brokers: string, grants: readonly { user: string; acls: readonly Acl[] }[]): Promise<void> {
  const { AclResourceTypes, AclOperationTypes, AclPermissionTypes, ResourcePatternTypes } = library.kafkajs
  const resources = {
    topic: AclResourceTypes.TOPIC,
    group: AclResourceTypes.GROUP,
    'transactional-id': AclResourceTypes.TRANSACTIONAL_ID,
  }
  const admin = new library.kafkajs.Kafka({ brokers: [brokers], logLevel: 0 }).admin()
  await admin.connect()
  await admin.createAcls({
    acl: grants.flatMap(({ user, acls }) =>
      acls.map((acl) => ({
        resourceType: resources[acl.resource],
        resourceName: acl.name,
        resourcePatternType: acl.prefixed ? ResourcePatternTypes.PREFIXED : ResourcePatternTypes.LITERAL,
        principal: `User:${user}`,
        host: '*',
        operation: AclOperationTypes[acl.operation],
        permissionType: AclPermissionTypes.ALLOW,
      })),
    ),
  })
  await admin.disconnect()
}

export const secureListeners: BrokerSecurity['listeners'] = [
  { name: 'SECURE', protocol: 'SASL_SSL', mechanisms: ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] },
  { name: 'MUTUAL', protocol: 'SSL', clientCertificate: true },
]
