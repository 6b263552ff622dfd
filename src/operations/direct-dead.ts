import { randomBytes } from 'node:crypto'
import type { DeadFilter, DeadLetter } from '../core/dead-letter.ts'
import { HooktideError } from '../core/error.ts'
import type { Caller, DeadFilterInput, DeadOperations } from './contract.ts'
import { cursorText, parseCursor } from './cursor.ts'
import { deadJson, deadShown } from './dead-json.ts'
import { readDead } from './dead-read.ts'
import { redrive } from './dead-redrive.ts'
import { topicNames } from './names.ts'
import type { OperationParts } from './parts.ts'
import { Patience } from './patience.ts'
import { partitionsOf } from './read-topic.ts'
import { tenantOf } from './tenant-of.ts'

/** Dead letters over Kafka: the topic is read, from its start or from a cursor. */
export function directDead(parts: OperationParts, caller: Caller): DeadOperations {
  const { kafka, config, clock, progress } = parts
  const names = topicNames(config)

  async function filterOf(input: DeadFilterInput): Promise<DeadFilter> {
    const { subscription, reason, lastError, since, until } = input
    const spread = subscription !== undefined && (await isSpread(subscription))
    return { subscription, reason, lastError, since, until, spread, tenant: tenantOf(caller, input.tenant) }
  }

  /** A spread subscription's deliveries die in several lanes. */
  async function isSpread(id: string): Promise<boolean> {
    const entry = (await parts.subscriptions.read()).get(id)
    return entry?.ok === true && (entry.value.spread ?? 1) > 1
  }

  return {
    async list(options) {
      const filter = await filterOf(options)
      const dead: ReturnType<typeof deadJson>[] = []
      const patience = new Patience(parts)
      const reader = kafka.reader()
      try {
        const from = options.cursor === undefined ? null : parseCursor(options.cursor)
        for await (const letter of readDead(kafka, reader, names.dead, filter, from, progress, patience)) {
          if (dead.length === options.limit) return { dead, cursor: cursorText(placeOf(letter)) }
          dead.push(deadJson(letter))
        }
        return { dead, cursor: patience.at === null ? null : cursorText(patience.at) }
      } finally {
        progress.end()
        await reader.close()
      }
    },

    async show(id, subscription) {
      const place = /^\d+\/\d+$/.test(id) ? parseCursor(id) : null
      const filter = place === null ? await filterOf({ subscription }) : await filterOf({})
      const wanted: DeadFilter = place === null ? { ...filter, ids: new Set([id]) } : filter
      let last: DeadLetter | null = null
      let times = 0
      const reader = kafka.reader()
      try {
        for await (const letter of readDead(kafka, reader, names.dead, wanted, place, progress)) {
          const { partition, offset } = placeOf(letter)
          if (place !== null && (partition !== place.partition || offset !== place.offset)) break
          last = letter
          times++
          if (place !== null) break
        }
      } finally {
        progress.end()
        await reader.close()
      }
      if (last !== null) return deadShown(last, times)
      throw new HooktideError('not-found', `there is no dead letter ${id.slice(0, 100)}`, {
        remedy: '`hooktide dead list` shows those there are.',
      })
    },

    async redrive(options) {
      const { ids, dryRun, perSecond } = options
      const job = `${Math.floor(clock.now()).toString(36)}-${randomBytes(4).toString('hex')}`
      const known = await parts.subscriptions.read()
      const filter = { ...(await filterOf(options)), ids: ids.length === 0 ? undefined : new Set(ids) }
      const from = options.cursor === undefined ? null : parseCursor(options.cursor)
      const patience = new Patience(parts)
      const reader = kafka.reader()
      const producer = kafka.producer()
      try {
        const letters = readDead(kafka, reader, names.dead, filter, from, progress, patience)
        const result = await redrive(letters, producer, {
          job,
          deliveriesTopic: names.deliveries,
          lanes: await partitionsOf(kafka, names.deliveries),
          perSecond: perSecond ?? null,
          dryRun,
          clock,
          signal: parts.signal,
          progress,
          isKnown: (id) => known.has(id),
        })
        const { redriven, repeated, unreadable, orphaned, met } = result
        const notFound = [...new Set(ids)].filter((id) => !met.has(id))
        const next = patience.at ?? (parts.signal.aborted ? result.next : null)
        const interrupted = parts.signal.aborted || patience.at !== null
        const cursor = next === null ? null : cursorText(next)
        return { job, dryRun, redriven, repeated, unreadable, orphaned, notFound, interrupted, cursor }
      } finally {
        progress.end()
        await Promise.all([reader.close(), producer.close()])
      }
    },
  }
}

function placeOf({ partition, record }: DeadLetter) {
  return { partition, offset: record.offset }
}
