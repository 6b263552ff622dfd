import Module, { createRequire } from 'node:module'
import type * as kafkajs from 'kafkajs'
import { HooktideError } from '../core/error.ts'
import { codecs } from './codecs.ts'
import type { Library } from './internals.ts'
import { FetchBatch } from './patches/batch.ts'
import { decodeMessages } from './patches/decode-messages.ts'
import { calmRequestQueue, type RequestQueueClass } from './patches/request-queue.ts'

/**
 * The only place that loads kafkajs, so that nothing can get hold of it unpatched. kafkajs is CommonJS without an
 * `exports` map: a module placed in the require cache before the first load stands in for the one on disk.
 * Upgrading kafkajs means reading every replaced module again; `test/kafka/load.test.ts` holds the version fast.
 */
const require = createRequire(import.meta.url)
const patched = Symbol.for('hooktide.kafkajs.patched')

const replaced: readonly (readonly [string, unknown])[] = [
  ['kafkajs/src/protocol/requests/fetch/v4/decodeMessages', decodeMessages],
  ['kafkajs/src/consumer/batch', FetchBatch],
]

function load(): Library {
  const main = require.resolve('kafkajs')
  const loaded = require.cache[main]?.exports as { [patched]?: true } | undefined
  if (loaded !== undefined && loaded[patched] !== true) {
    throw new HooktideError('internal', 'kafkajs was loaded before its patches: import it from src/kafka/load.ts only')
  }
  if (loaded === undefined) {
    for (const [name, exports] of replaced) {
      const path = require.resolve(name)
      const stub = new Module(path)
      stub.exports = exports
      stub.loaded = true
      require.cache[path] = stub
    }
  }
  const library = require('kafkajs') as typeof kafkajs
  if (loaded === undefined) {
    Object.defineProperty(library, patched, { value: true })
    calmRequestQueue(require('kafkajs/src/network/requestQueue') as RequestQueueClass)
    for (const [type, { codec }] of Object.entries(codecs)) library.CompressionCodecs[Number(type) as 1] = () => codec
  }
  const get = (name: string) => require(`kafkajs/src/${name}`)
  return {
    kafkajs: library,
    Broker: get('broker'),
    connectionPoolBuilder: get('cluster/connectionPoolBuilder'),
    socketFactory: get('network/socketFactory'),
    createLogger: get('loggers').createLogger,
    Encoder: get('protocol/encoder'),
    apiKeys: get('protocol/requests/apiKeys'),
    requests: get('protocol/requests').requests,
    createErrorFromCode: get('protocol/error').createErrorFromCode,
  }
}

export const library: Library = load()
