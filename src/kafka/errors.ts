import { HooktideError, messageOf } from '../core/error.ts'

/** What was being done, for the message and the remedy. */
export interface Doing {
  /** `produce`, `fetch`, `list offsets`, `commit a transaction`, … */
  readonly operation: string
  readonly topic?: string | undefined
  readonly group?: string | undefined
  readonly transactionalId?: string | undefined
}

/** Fields kafkajs puts on its errors. `type` is the protocol's name of an error code. */
interface Foreign {
  readonly name?: string
  readonly type?: string
  readonly code?: string | number
  readonly retriable?: boolean
  readonly cause?: unknown
}

/**
 * How a retry loop should take an error: `concurrent` (the previous transaction is just ending: milliseconds), `stale`
 * (ask for leader or coordinator anew), `connection` (and reconnect), `later` (the broker says so), `fatal`.
 */
export type Trouble = 'concurrent' | 'stale' | 'connection' | 'later' | 'fatal'

const stale: ReadonlySet<string> = new Set([
  'NOT_LEADER_FOR_PARTITION',
  'LEADER_NOT_AVAILABLE',
  'REPLICA_NOT_AVAILABLE',
  'FENCED_LEADER_EPOCH',
  'UNKNOWN_LEADER_EPOCH',
  'UNKNOWN_TOPIC_OR_PARTITION',
  'KAFKA_STORAGE_ERROR',
  'NOT_COORDINATOR_FOR_GROUP',
  'GROUP_COORDINATOR_NOT_AVAILABLE',
  'GROUP_LOAD_IN_PROGRESS',
])

const later: ReadonlySet<string> = new Set([
  'NOT_ENOUGH_REPLICAS',
  'NOT_ENOUGH_REPLICAS_AFTER_APPEND',
  'REQUEST_TIMED_OUT',
  'NETWORK_EXCEPTION',
  'UNSTABLE_OFFSET_COMMIT',
])

const connectionErrors: ReadonlySet<string> = new Set([
  'KafkaJSConnectionError',
  'KafkaJSConnectionClosedError',
  'KafkaJSRequestTimeoutError',
  'KafkaJSLockTimeout',
  'KafkaJSBrokerNotFound',
])

export function troubleOf(error: unknown): Trouble {
  if (error instanceof HooktideError) return error.code === 'topic.missing' ? 'stale' : 'fatal'
  const e = error as Foreign
  if (isTlsRefusal(e)) return 'fatal'
  if (e.type === 'CONCURRENT_TRANSACTIONS') return 'concurrent'
  if (e.type !== undefined && stale.has(e.type)) return 'stale'
  if (e.type !== undefined && later.has(e.type)) return 'later'
  if (e.name !== undefined && connectionErrors.has(e.name)) return 'connection'
  if (typeof e.code === 'string' && /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|EAI_AGAIN|ENOTFOUND)/.test(e.code))
    return 'connection'
  return 'fatal'
}

export function isTooLarge(error: unknown): boolean {
  const { type } = error as Foreign
  return type === 'MESSAGE_TOO_LARGE' || type === 'RECORD_LIST_TOO_LARGE'
}

/** Somebody else holds the transactional id now, or the broker has timed our transaction out. */
export function isFenced(error: unknown): boolean {
  const { type } = error as Foreign
  return type === 'INVALID_PRODUCER_EPOCH' || type === 'PRODUCER_FENCED'
}

/** The one translation of kafkajs's and the broker's errors into ours. Passes our own through. */
export function translate(error: unknown, doing: Doing): HooktideError {
  if (error instanceof HooktideError) return error
  const e = error as Foreign
  const what = describe(doing)
  const wrap = (code: HooktideError['code'], message: string, remedy?: string) =>
    new HooktideError(code, message, remedy === undefined ? { cause: error } : { cause: error, remedy })

  const denied = authorization(e.type, doing)
  if (denied !== null) {
    return wrap('broker.unauthorized', `Kafka refused to ${what}: ${denied.missing} is missing`, denied.remedy)
  }
  if (e.name === 'KafkaJSSASLAuthenticationError' || e.type === 'SASL_AUTHENTICATION_FAILED') {
    return wrap(
      'broker.unauthenticated',
      `Kafka refused the login: ${messageOf(error)}`,
      'Check kafka.sasl (mechanism, username, password).',
    )
  }
  if (isTlsRefusal(e)) {
    return wrap(
      'broker.unauthenticated',
      `TLS with the broker failed: ${messageOf(error)}`,
      'Check kafka.ssl: the CA that signed the broker certificate, its host names, and our own certificate and key.',
    )
  }
  switch (e.type) {
    case 'MESSAGE_TOO_LARGE':
    case 'RECORD_LIST_TOO_LARGE':
      return wrap(
        'record.too-large',
        `A record is larger than ${named('topic', doing.topic)} takes`,
        `Raise max.message.bytes of the topic, or send less.`,
      )
    case 'INVALID_PRODUCER_EPOCH':
    case 'PRODUCER_FENCED':
      return wrap(
        'producer.fenced',
        `Another owner of ${named('transactional id', doing.transactionalId)} has taken over (${what})`,
      )
    case 'UNKNOWN_TOPIC_OR_PARTITION':
      return missingTopic(doing.topic ?? '?', error)
    case 'UNSUPPORTED_VERSION':
    case 'UNSUPPORTED_FOR_MESSAGE_FORMAT':
      return wrap('broker.incompatible', `The broker is too old or too new to ${what}`, 'Kafka 2.5 or later is needed.')
  }
  if (e.name === 'KafkaJSServerDoesNotSupportApiKey') {
    return wrap('broker.incompatible', `The broker can't ${what}: ${messageOf(error)}`, 'Kafka 2.5 or later is needed.')
  }
  switch (troubleOf(error)) {
    case 'connection':
    case 'stale':
    case 'later':
    case 'concurrent':
      return wrap(
        'broker.unavailable',
        `Kafka can't ${what} now: ${e.type ?? messageOf(error)}`,
        'Check that the brokers are up and reachable under their advertised addresses.',
      )
    case 'fatal':
      return wrap('internal', `Failed to ${what}: ${e.type ?? messageOf(error)}`)
  }
}

export function missingTopic(topic: string, cause?: unknown): HooktideError {
  return new HooktideError('topic.missing', `Topic ${topic} does not exist (or lacks the partition)`, {
    cause,
    remedy: 'Run `hooktide topics apply`, or create it.',
  })
}

function authorization(type: string | undefined, doing: Doing): { missing: string; remedy: string } | null {
  const acl = (resource: string, operations: string) => ({
    missing: `${operations} on ${resource}`,
    remedy: `Grant our principal the ACL ${operations} on ${resource}.`,
  })
  switch (type) {
    case 'TOPIC_AUTHORIZATION_FAILED': {
      const write = doing.operation === 'produce' || doing.operation.includes('transaction')
      return acl(named('topic', doing.topic), write ? 'WRITE and DESCRIBE' : 'READ and DESCRIBE')
    }
    case 'GROUP_AUTHORIZATION_FAILED':
      return acl(named('group', doing.group), 'READ')
    case 'TRANSACTIONAL_ID_AUTHORIZATION_FAILED':
      return acl(named('transactional id', doing.transactionalId), 'WRITE and DESCRIBE')
    case 'CLUSTER_AUTHORIZATION_FAILED':
      return acl('the cluster', doing.operation === 'produce' ? 'IDEMPOTENT_WRITE' : 'DESCRIBE')
    default:
      return null
  }
}

function isTlsRefusal(e: Foreign): boolean {
  const code = typeof e.code === 'string' ? e.code : ''
  return /^(ERR_TLS|ERR_SSL|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_|HOSTNAME_MISMATCH)/.test(code)
}

function describe(doing: Doing): string {
  const where = [
    doing.topic === undefined ? null : `topic ${doing.topic}`,
    doing.group === undefined ? null : `group ${doing.group}`,
    doing.transactionalId === undefined ? null : `transactional id ${doing.transactionalId}`,
  ].filter((part) => part !== null)
  return where.length === 0 ? doing.operation : `${doing.operation} (${where.join(', ')})`
}

function named(kind: string, name: string | undefined): string {
  return name === undefined ? `a ${kind}` : `${kind} ${name}`
}
