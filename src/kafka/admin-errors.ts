import { HooktideError } from '../core/error.ts'
import { translate } from './errors.ts'
import { library } from './load.ts'

export interface Asked {
  /** For a person: `create`, `describe`, … */
  readonly operation: string
  readonly topic?: string
  readonly group?: string
  /** ACL operation and resource that the broker checks for it. */
  readonly acl: string
  /** The broker's own sentence, which says more than the code. */
  readonly detail?: string | null
}

const refusals: ReadonlySet<string> = new Set([
  'TOPIC_AUTHORIZATION_FAILED',
  'GROUP_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
])

const badSettings: ReadonlySet<string> = new Set([
  'INVALID_CONFIG',
  'INVALID_PARTITIONS',
  'INVALID_REPLICATION_FACTOR',
  'INVALID_TOPIC_EXCEPTION',
  'POLICY_VIOLATION',
  'INVALID_REQUEST',
])

/** A broker's error code in an administrative answer as our error: an ACL that is missing is named. */
export function adminError(code: number, asked: Asked): HooktideError {
  return adminFailure(library.createErrorFromCode(code), asked)
}

export function adminFailure(error: unknown, asked: Asked): HooktideError {
  const type = (error as { type?: string }).type ?? ''
  const what = [asked.operation, asked.topic, asked.group].filter((part) => part !== undefined).join(' ')
  if (refusals.has(type)) {
    return new HooktideError('broker.unauthorized', `Kafka refused to ${what}: the ACL ${asked.acl} is missing`, {
      cause: error,
      remedy: `Grant our principal ${asked.acl}; docs/security-kafka.md lists what each role needs.`,
    })
  }
  if (badSettings.has(type)) {
    return new HooktideError('config.invalid', `Kafka will not ${what}: ${asked.detail ?? type}`, {
      cause: error,
      remedy: 'Correct the topic file or the configuration, or ask who sets the policy of the cluster.',
    })
  }
  return translate(error, { operation: asked.operation, topic: asked.topic, group: asked.group })
}
