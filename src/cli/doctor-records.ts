import type { Config } from '../config.ts'
import { roomProblems } from '../core/record-room.ts'
import type { Result } from '../core/result.ts'
import type { Cluster } from '../operations/cluster.ts'
import type { ControlStore } from '../operations/control-store.ts'
import { readTopicSpecs } from '../operations/topic-folder.ts'
import { bad, type Found, good, warn } from './doctor-finding.ts'
import { plural } from './text.ts'

export interface Unreadable {
  readonly key: string
  readonly reason: string
  /** Written by a newer Hooktide. */
  readonly newer: boolean
}

/** One finding for those of a newer version, one for those that are damaged: how many, and one to look at. */
export function unreadableFound(
  what: string,
  records: readonly Unreadable[],
  remedies: { readonly newer: string; readonly damaged: string },
): Found[] {
  return [true, false].flatMap((newer) => {
    const these = records.filter((record) => record.newer === newer)
    const [example] = these
    if (example === undefined) return []
    const how = newer ? `${these.length === 1 ? 'is' : 'are'} of a newer version` : 'can not be read'
    const message = `${plural(these.length, what)} ${how}, e.g. ${example.key}: ${example.reason}`
    return [bad(message, newer ? remedies.newer : remedies.damaged)]
  })
}

export function unreadableEntries(table: ReadonlyMap<string, Result<unknown>>): Unreadable[] {
  return [...table].flatMap(([key, entry]) =>
    entry.ok ? [] : [{ key, reason: entry.reason, newer: entry.code === 'unknown-version' }],
  )
}

/** Instances pass over an order that they can't read: what it held goes on. */
export async function checkControl(store: Pick<ControlStore, 'read'>): Promise<readonly Found[]> {
  const all = [...(await store.read()).values()]
  const unreadable = all.flatMap(({ key, problem, newer }) =>
    problem === null ? [] : [{ key, reason: problem, newer }],
  )
  return [
    good(`${plural(all.length - unreadable.length, 'record')} of orders and jobs can be read`),
    ...unreadableFound('control record', unreadable, {
      newer: 'Upgrade this Hooktide; until then the order is not obeyed here.',
      damaged: 'Give the order again, or take it back: hooktide control clear TARGET.',
    }),
  ]
}

/** The largest event that goes inline, with its headers, must fit into a record of every topic on its way. */
export async function checkSizes({ admin }: Pick<Cluster, 'admin'>, config: Config): Promise<readonly Found[]> {
  const specs = await readTopicSpecs(config.topics)
  const states = await admin.describe(specs.map(({ name }) => name))
  const { maxEventBytes } = config.router
  const problems = roomProblems(specs, states, maxEventBytes)
  const remedy = 'Raise max.message.bytes of the topic, or lower router.maxEventBytes: the service refuses to start.'
  if (problems.length > 0) return problems.map((line) => bad(line, remedy))
  const inline = `events of up to ${maxEventBytes} bytes fit into every topic on their way`
  const stored = config.objects.directory !== null || config.objects.s3.bucket !== null
  if (!stored) return [good(`${inline}; larger ones are rejected`)]
  const { maxBytes } = config.objects
  if (maxBytes <= maxEventBytes) {
    const message = `objects.maxBytes (${maxBytes}) is not above router.maxEventBytes (${maxEventBytes}): no body is ever stored apart`
    return [warn(message, 'Raise objects.maxBytes, or remove the store.')]
  }
  return [good(`${inline}; bodies of up to ${maxBytes} bytes are stored apart`)]
}
