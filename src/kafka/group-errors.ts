import { type ErrorCode, HooktideError, messageOf } from '../core/error.ts'
import { translate } from './errors.ts'

/** What a failure of the group protocol or of a fetch asks for. */
export type Trouble =
  /** A rebalance began; our generation still counts until we join. */
  | 'rebalance'
  /** We are no member any more, or of a generation that has passed: nothing may be committed. */
  | 'evicted'
  /** Ask for the coordinator again, then repeat. */
  | 'coordinator'
  /** Partition leaders moved: refresh metadata. */
  | 'metadata'
  | 'offset'
  /** The topic does not exist (or its metadata has not arrived yet). */
  | 'topic'
  /** Connections or the broker: a fresh link, with back-off, for as long as it takes. */
  | 'unavailable'
  /** Nobody but a person can heal it. */
  | 'forbidden'
  | 'unexpected'

const byType: Readonly<Record<string, Trouble>> = {
  REBALANCE_IN_PROGRESS: 'rebalance',
  UNKNOWN_MEMBER_ID: 'evicted',
  ILLEGAL_GENERATION: 'evicted',
  FENCED_INSTANCE_ID: 'evicted',
  NOT_COORDINATOR_FOR_GROUP: 'coordinator',
  GROUP_COORDINATOR_NOT_AVAILABLE: 'coordinator',
  GROUP_LOAD_IN_PROGRESS: 'coordinator',
  LEADER_NOT_AVAILABLE: 'metadata',
  NOT_LEADER_FOR_PARTITION: 'metadata',
  FENCED_LEADER_EPOCH: 'metadata',
  UNKNOWN_LEADER_EPOCH: 'metadata',
  REPLICA_NOT_AVAILABLE: 'metadata',
  OFFSET_NOT_AVAILABLE: 'metadata',
  KAFKA_STORAGE_ERROR: 'metadata',
  UNKNOWN_TOPIC_OR_PARTITION: 'topic',
  OFFSET_OUT_OF_RANGE: 'offset',
  // A broker on its way down answers with it.
  UNKNOWN: 'unavailable',
  REQUEST_TIMED_OUT: 'unavailable',
  NETWORK_EXCEPTION: 'unavailable',
  SASL_AUTHENTICATION_FAILED: 'forbidden',
  ILLEGAL_SASL_STATE: 'unavailable',
  TOPIC_AUTHORIZATION_FAILED: 'forbidden',
  GROUP_AUTHORIZATION_FAILED: 'forbidden',
  CLUSTER_AUTHORIZATION_FAILED: 'forbidden',
  INVALID_TOPIC_EXCEPTION: 'forbidden',
  INVALID_GROUP_ID: 'forbidden',
  INVALID_SESSION_TIMEOUT: 'forbidden',
  INCONSISTENT_GROUP_PROTOCOL: 'forbidden',
  GROUP_MAX_SIZE_REACHED: 'forbidden',
  UNSUPPORTED_VERSION: 'forbidden',
}

const byName: Readonly<Record<string, Trouble>> = {
  KafkaJSConnectionError: 'unavailable',
  KafkaJSConnectionClosedError: 'unavailable',
  KafkaJSRequestTimeoutError: 'unavailable',
  KafkaJSLockTimeout: 'unavailable',
  KafkaJSTimeout: 'unavailable',
  KafkaJSBrokerNotFound: 'unavailable',
  KafkaJSNoBrokerAvailableError: 'unavailable',
  KafkaJSGroupCoordinatorNotFound: 'coordinator',
  KafkaJSMetadataNotLoaded: 'unavailable',
  KafkaJSTopicMetadataNotLoaded: 'unavailable',
  KafkaJSSASLAuthenticationError: 'forbidden',
  KafkaJSServerDoesNotSupportApiKey: 'forbidden',
}

/** OpenSSL's and Node's codes for a certificate that another attempt will not change. */
const tlsCodes =
  /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED_CERT|UNABLE_TO_(VERIFY|GET_ISSUER)|HOSTNAME_MISMATCH)/

const byCode: Partial<Record<ErrorCode, Trouble>> = {
  'broker.timeout': 'unavailable',
  'broker.unavailable': 'unavailable',
  'topic.missing': 'topic',
}

export function troubleOf(error: unknown): Trouble {
  if (error instanceof HooktideError) return byCode[error.code] ?? 'unexpected'
  const { type, name, code } = (error ?? {}) as { type?: unknown; name?: unknown; code?: unknown }
  if (typeof code === 'string' && tlsCodes.test(code)) return 'forbidden'
  if (typeof code === 'string' && /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|EAI_AGAIN|ENOTFOUND)/.test(code))
    return 'unavailable'
  if (typeof type === 'string' && Object.hasOwn(byType, type)) return byType[type] as Trouble
  if (typeof name === 'string' && Object.hasOwn(byName, name)) return byName[name] as Trouble
  return 'unexpected'
}

/** A topic made a moment ago may be unknown to a broker, and so may any to one that has just started. */
const topicGraceMs = 3000

/** What a start need not wait for any longer: only a person can heal it. */
export function isFinal(error: unknown, waitedMs: number): boolean {
  const trouble = troubleOf(error)
  return trouble === 'forbidden' || (trouble === 'topic' && waitedMs > topicGraceMs)
}

/** The error a caller sees. */
export function groupError(error: unknown, operation: string, group: string): HooktideError {
  const { type } = (error ?? {}) as { type?: string }
  const text = `Group ${group} can't ${operation}: ${type ?? messageOf(error)}`
  switch (type) {
    case 'INCONSISTENT_GROUP_PROTOCOL':
      return new HooktideError('broker.incompatible', text, {
        cause: error,
        remedy: 'Another program is in this group: give each its own group name',
      })
    case 'INVALID_GROUP_ID':
    case 'INVALID_SESSION_TIMEOUT':
      return new HooktideError('config.invalid', text, {
        cause: error,
        remedy:
          'The session time-out must lie within group.min.session.timeout.ms and group.max.session.timeout.ms of the broker',
      })
  }
  switch (troubleOf(error)) {
    case 'rebalance':
    case 'evicted':
    case 'offset':
    case 'unexpected':
      return error instanceof HooktideError ? error : new HooktideError('consumer.failed', text, { cause: error })
    default:
      return translate(error, { operation, group })
  }
}
