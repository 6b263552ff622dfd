import type { Encoder, Protocol } from './internals.ts'
import { library } from './load.ts'

export interface AlterResult {
  readonly errorCode: number
  readonly errorMessage: string | null
}

/**
 * IncrementalAlterConfigs v0 (KIP-339, Kafka 2.3), which kafkajs lacks: sets the given settings of one topic and leaves
 * the others alone. The older AlterConfigs replaces all overrides, so that a read and a merge would have to come before
 * it, and somebody's change in between would be lost.
 */
export function incrementalAlter(topic: string, configs: Readonly<Record<string, string>>): Protocol<AlterResult> {
  return {
    request: {
      apiKey: 44,
      apiVersion: 0,
      apiName: 'IncrementalAlterConfigs',
      encode: async () => encodeRequest(topic, configs),
    },
    response: { decode: async (data) => decodeResponse(data), parse: async (data) => data },
  }
}

const topicResource = 2
const set = 0

function encodeRequest(topic: string, configs: Readonly<Record<string, string>>): Encoder {
  const entries = Object.entries(configs)
  const encoder = new library.Encoder()
  encoder
    .writeInt32(1)
    .writeBuffer(Buffer.from([topicResource]))
    .writeString(topic)
    .writeInt32(entries.length)
  for (const [name, value] of entries)
    encoder
      .writeString(name)
      .writeBuffer(Buffer.from([set]))
      .writeString(value)
  const validateOnly = 0
  return encoder.writeBuffer(Buffer.from([validateOnly]))
}

/** throttle time, then per resource: error code, message, type, name. */
function decodeResponse(data: Buffer): AlterResult {
  if (data.readInt32BE(4) < 1) return { errorCode: -1, errorMessage: 'empty answer' }
  const length = data.readInt16BE(10)
  return { errorCode: data.readInt16BE(8), errorMessage: length < 0 ? null : data.toString('utf8', 12, 12 + length) }
}
