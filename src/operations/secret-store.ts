import type { Config } from '../config.ts'
import { endpointRefs } from '../core/endpoint-settings.ts'
import { HooktideError } from '../core/error.ts'
import { partitionOf } from '../core/partition.ts'
import { emptyHeaders, type OutRecord } from '../core/record.ts'
import { type MasterKeys, openSecret, type SealedSecret } from '../core/sealed-secret.ts'
import type { Secret } from '../core/secret.ts'
import type { Clock, Kafka } from '../ports.ts'
import { decodeSecret } from '../schema/decode.ts'
import { topicNames } from './names.ts'
import { confirmWritten, partitionsOf, readLatest } from './read-topic.ts'
import { SubscriptionStore } from './subscription-store.ts'
import type { SecretTools } from './tools.ts'

export interface SecretParts {
  readonly kafka: Kafka
  readonly config: Config
  readonly clock: Clock
  readonly tools: SecretTools
}

/** A record of the `secrets` topic as it may be shown. */
export interface SecretView {
  readonly id: string
  readonly version: number | null
  /** Of the master key it is sealed with. */
  readonly keyId: string | null
  readonly createdAtMs: number | null
  /** Why it is of no use here; null: it opens. */
  readonly problem: string | null
  /** Ids of subscriptions that refer to it. */
  readonly usedBy: readonly string[]
}

/** The `secrets` topic by hand: `kafka:ID` can hold anything an endpoint wants, not only signing secrets. */
export class SecretStore {
  readonly #parts: SecretParts
  readonly #topic: string

  constructor(parts: SecretParts) {
    this.#parts = parts
    this.#topic = topicNames(parts.config).secrets
  }

  async list(): Promise<SecretView[]> {
    const { config, tools } = this.#parts
    const [records, uses] = await Promise.all([this.#read(), this.#uses()])
    const keys = tools.masterKeys(config)
    return [...records]
      .map(([id, sealed]): SecretView => {
        const usedBy = uses.get(id) ?? []
        if (typeof sealed === 'string')
          return { id, version: null, keyId: null, createdAtMs: null, problem: sealed, usedBy }
        const { version, keyId, createdAtMs } = sealed
        const opened = keys.ok ? openSecret(sealed, keys.value) : keys
        return { id, version, keyId, createdAtMs, problem: opened.ok ? null : opened.reason, usedBy }
      })
      .sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  /** Seals the text under the current master key; the next version of an id that exists. Returns the version. */
  async put(id: string, text: Secret): Promise<number> {
    const before = (await this.#read()).get(id)
    const version = before === undefined ? 1 : typeof before === 'string' ? 1 : before.version + 1
    await this.#seal([{ id, version, text }])
    return version
  }

  /** Seals everything anew that stands under another master key than the current one. Returns the ids. */
  async rekey(): Promise<string[]> {
    const keys = this.#keys()
    const old = [...(await this.#read())].flatMap(([id, sealed]) => {
      if (typeof sealed === 'string' || sealed.keyId === keys.current.id) return []
      const opened = openSecret(sealed, keys)
      if (!opened.ok) {
        throw new HooktideError('secret.unavailable', `secret ${id} can not be sealed anew: ${opened.reason}`, {
          remedy: 'Give its master key too, behind the new one, until everything is sealed anew.',
        })
      }
      return [{ id, version: sealed.version + 1, text: opened.value }]
    })
    await this.#seal(old)
    return old.map(({ id }) => id)
  }

  async remove(id: string, force: boolean): Promise<void> {
    if (!(await this.#read()).has(id)) {
      throw new HooktideError('not-found', `there is no secret ${id} in ${this.#topic}`, {
        remedy: 'See `hooktide secrets list`.',
      })
    }
    const usedBy = (await this.#uses()).get(id) ?? []
    if (usedBy.length > 0 && !force) {
      throw new HooktideError('usage', `secret ${id} is used by ${usedBy.join(', ')}`, {
        remedy: 'Give these another one first, or say --force: their deliveries then wait for it.',
      })
    }
    await this.#write([{ key: id, value: null }])
  }

  #keys(): MasterKeys {
    const keys = this.#parts.tools.masterKeys(this.#parts.config)
    if (keys.ok) return keys.value
    throw new HooktideError('secret.unavailable', `secrets are sealed under the master key: ${keys.reason}`, {
      remedy: 'Set secrets.masterKeyRef to env:NAME or file:PATH of `keyid:BASE64`.',
    })
  }

  /** By id: the record, or why it can't be read. */
  async #read(): Promise<Map<string, SealedSecret | string>> {
    const { kafka } = this.#parts
    await partitionsOf(kafka, this.#topic)
    const reader = kafka.reader()
    try {
      return new Map(
        [...(await readLatest(reader, this.#topic))].map(([id, { record }]) => {
          const decoded = decodeSecret(record)
          return [id, decoded.ok ? decoded.value : decoded.reason]
        }),
      )
    } finally {
      await reader.close()
    }
  }

  async #uses(): Promise<Map<string, string[]>> {
    const { kafka, config, clock } = this.#parts
    const store = new SubscriptionStore(kafka, topicNames(config).subscriptions, clock)
    const uses = new Map<string, string[]>()
    for (const [subscriptionId, read] of await store.read()) {
      if (!read.ok) continue
      for (const ref of [...read.value.secrets.map((secret) => secret.ref), ...endpointRefs(read.value)]) {
        if (!ref.startsWith('kafka:')) continue
        const id = ref.slice('kafka:'.length)
        uses.set(id, [...new Set([...(uses.get(id) ?? []), subscriptionId])])
      }
    }
    return uses
  }

  async #seal(
    plain: readonly { readonly id: string; readonly version: number; readonly text: Secret }[],
  ): Promise<void> {
    const { tools, clock } = this.#parts
    const { current } = this.#keys()
    await this.#write(
      plain.map(({ id, version, text }) => ({
        key: id,
        value: Buffer.from(JSON.stringify(tools.seal({ id, version, text, createdAtMs: clock.now() }, current))),
      })),
    )
  }

  async #write(entries: readonly { readonly key: string; readonly value: Buffer | null }[]): Promise<void> {
    if (entries.length === 0) return
    const { kafka, clock } = this.#parts
    const count = await partitionsOf(kafka, this.#topic)
    const records = entries.map(
      ({ key, value }): OutRecord => ({
        topic: this.#topic,
        partition: partitionOf(key, count),
        key,
        value,
        headers: emptyHeaders,
      }),
    )
    const reader = kafka.reader()
    const producer = kafka.producer()
    try {
      const ends = await reader.ends(this.#topic)
      await confirmWritten(reader, clock, records, await producer.send(records), ends)
    } finally {
      await Promise.all([reader.close(), producer.close()])
    }
  }
}
