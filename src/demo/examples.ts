import { createRequire } from 'node:module'
import { HooktideError } from '../core/error.ts'
import { partitionOf } from '../core/partition.ts'
import { headerMap, type OutRecord } from '../core/record.ts'

/** A real webhook of GitHub's, as JSON text. */
export interface Example {
  readonly type: string
  /** Full name of the repository, else organisation or sender: what its events are ordered by. Null: it names none. */
  readonly key: string | null
  readonly body: Buffer
}

interface Definition {
  readonly name: string
  readonly examples: readonly Payload[]
}

interface Payload {
  readonly action?: unknown
  readonly repository?: { readonly full_name?: unknown }
  readonly organization?: { readonly login?: unknown }
  readonly sender?: { readonly login?: unknown }
}

const packageName = '@octokit/webhooks-examples'

/** Every example of every event of the package; rejects when it is not installed (it is a development dependency). */
export function loadExamples(): readonly Example[] {
  let definitions: readonly Definition[]
  try {
    definitions = createRequire(import.meta.url)(packageName) as readonly Definition[]
  } catch (cause) {
    throw new HooktideError('not-found', `the demo's events come from ${packageName}, which is not installed`, {
      cause,
      remedy: 'Run `npm ci` (without --omit=dev) in the folder of Hooktide.',
    })
  }
  return mixed(definitions.flatMap(({ name, examples }) => examples.map((payload) => exampleOf(name, payload))))
}

/** Every nth, then those after them: the package is sorted by event, and a few of the first should be of many kinds. */
function mixed<T>(items: readonly T[], n = 17): T[] {
  return Array.from({ length: n }, (_, start) => items.filter((_, i) => i % n === start)).flat()
}

export function exampleOf(name: string, payload: Payload): Example {
  const { action, repository, organization, sender } = payload
  const candidates = [repository?.full_name, organization?.login, sender?.login]
  const key = candidates.find((value) => typeof value === 'string' && value !== '') as string | undefined
  return {
    type: typeof action === 'string' ? `${name}.${action}` : name,
    key: key ?? null,
    body: Buffer.from(JSON.stringify(payload)),
  }
}

/** The record of the demo's event `number` (from 0): examples again and again, each time with an id of its own. */
export function eventRecord(
  examples: readonly Example[],
  number: number,
  to: { readonly topic: string; readonly partitions: number; readonly run: string },
): OutRecord {
  const { type, key, body } = examples[number % examples.length] as Example
  return {
    topic: to.topic,
    partition: key === null ? number % to.partitions : partitionOf(key, to.partitions),
    key,
    value: body,
    headers: headerMap([
      ['event-id', `${to.run}-${number + 1}`],
      ['event-type', type],
      ['content-type', 'application/json'],
    ]),
  }
}
