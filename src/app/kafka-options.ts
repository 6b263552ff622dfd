import { readFileSync } from 'node:fs'
import type { Config } from '../config.ts'
import { HooktideError, messageOf } from '../core/error.ts'
import type { KafkaOptions } from '../kafka/client.ts'
import type { References } from '../secrets/references.ts'

/** The client's options out of the configuration: files read, the password resolved. Throws `config.invalid` or `secret.unavailable`. */
export function kafkaOptions(config: Config, references: References): KafkaOptions {
  const { kafka } = config
  return {
    brokers: kafka.brokers,
    clientId: kafka.clientId,
    ssl: kafka.ssl.enabled ? tls(kafka.ssl) : undefined,
    sasl: sasl(kafka.sasl, references),
    connectTimeoutMs: kafka.connectTimeoutMs,
    requestTimeoutMs: kafka.requestTimeoutMs,
    group: { sessionMs: kafka.sessionTimeoutMs, heartbeatMs: Math.min(2_000, Math.floor(kafka.sessionTimeoutMs / 5)) },
  }
}

function tls(ssl: Config['kafka']['ssl']): NonNullable<KafkaOptions['ssl']> {
  const read = (key: 'ca' | 'cert' | 'key') => {
    const path = ssl[key]
    if (path === null) return {}
    try {
      return { [key]: readFileSync(path, 'utf8') }
    } catch (cause) {
      throw new HooktideError('config.invalid', `kafka.ssl.${key}: ${path} can not be read: ${messageOf(cause)}`, {
        cause,
        remedy: 'Give the path of a readable PEM file.',
      })
    }
  }
  return { ...read('ca'), ...read('cert'), ...read('key') }
}

function sasl(settings: Config['kafka']['sasl'], references: References): KafkaOptions['sasl'] {
  const { mechanism, username, passwordRef } = settings
  if (mechanism === null || username === null || passwordRef === null) return undefined
  const password = references.text(passwordRef)
  if (!password.ok) {
    throw new HooktideError('secret.unavailable', `kafka.sasl.passwordRef: ${password.reason}`, {
      remedy: 'Make the reference readable, or correct it.',
    })
  }
  return { mechanism, username, password: password.value.reveal() }
}
