import { deliveryId } from '../core/delivery-id.ts'
import { HooktideError } from '../core/error.ts'
import type { Event } from '../core/event.ts'
import { parseEvent } from '../core/event-format.ts'
import type { PartRange } from '../core/job.ts'
import { patternMatches } from '../core/match-index.ts'
import { lanesOf } from '../core/partition.ts'
import { mostReached, ReachedIds } from '../core/reached-ids.ts'
import type { Subscription } from '../core/subscription.ts'
import { contentProblems } from '../core/subscription-content.ts'
import { wantsEvent } from '../core/wants-event.ts'
import type { LogReader } from '../ports.ts'
import type { ReplayInput, ReplayPreview } from './job-contract.ts'
import { topicNames } from './names.ts'
import type { OperationParts } from './parts.ts'
import { Patience } from './patience.ts'
import { partitionsOf } from './read-topic.ts'

/** What a replay would send, and what it would with another filter or other types. Reads events, writes nothing. */
export async function previewReplay(
  parts: OperationParts,
  reader: LogReader,
  subscription: Subscription,
  ranges: ReadonlyMap<string, PartRange>,
  input: ReplayInput,
): Promise<ReplayPreview> {
  const { config, progress, signal } = parts
  const { maxEventBytes: maxBytes, maxHeaders } = config.router
  const limits = { maxBytes, maxHeaders, maxClaimBytes: config.objects.maxBytes }
  const { enabled, typePrefix } = config.operationalEvents
  const reserved = enabled ? typePrefix : null
  const changed = input.shadow === undefined ? null : withChange(subscription, input.shadow)
  const counts = { events: 0, unreadable: 0, wanted: 0, reached: 0, shadowWanted: 0, added: 0, removed: 0 }
  const examples: ReplayPreview['examples'][number][] = []
  const patience = new Patience(parts)
  const reached = input.onlyMissing === true ? await reachedOf(parts, reader, subscription) : null
  const total = [...ranges.values()].reduce((n, { from, to }) => n + (to ?? from) - from, 0)

  const look = (event: Event) => {
    if (!inScope(event, input)) return
    const now = wantsEvent(subscription, event, reserved)
    const then = changed === null ? now : wantsEvent(changed, event, reserved)
    if (now && reached?.has(deliveryId(event.identity, subscription.id)) === true) {
      counts.reached++
      return
    }
    if (now) counts.wanted++
    if (then) counts.shadowWanted++
    if (then && !now) counts.added++
    if (now && !then) counts.removed++
    const told = changed === null ? now : then !== now
    if (told && examples.length < mostExamples) {
      examples.push({ eventId: event.id, type: event.type, timeMs: event.timeMs, sent: then })
    }
  }

  let complete = true
  for (const [part, { from, to }] of ranges) {
    const slash = part.lastIndexOf('/')
    const at = { topic: part.slice(0, slash), partition: Number(part.slice(slash + 1)) }
    for (let next = from; next < (to ?? from) && complete; ) {
      const batch = await reader.fetch({ ...at, from: next })
      for (const record of batch.records) {
        if (record.offset >= (to ?? from)) break
        counts.events++
        const event = parseEvent(record, at, limits)
        if (event.ok) look(event.value)
        else counts.unreadable++
      }
      if (batch.nextOffset <= next) break
      next = batch.nextOffset
      progress.update(`${counts.events} of ${total} events looked at, ${counts.wanted} wanted`)
      complete = !signal.aborted && !patience.isOver({ partition: at.partition, offset: next })
    }
  }
  progress.end()
  const { events, unreadable, wanted, reached: left, shadowWanted, added, removed } = counts
  const shadow = changed === null ? null : { wanted: shadowWanted, added, removed }
  return { subscription: subscription.id, events, unreadable, wanted, reached: left, shadow, complete, examples }
}

async function reachedOf(
  { kafka, config }: OperationParts,
  reader: LogReader,
  subscription: Subscription,
): Promise<ReachedIds> {
  const { attempts: topic } = topicNames(config)
  const reached = new ReachedIds(subscription.id)
  const lanes = lanesOf(subscription, await partitionsOf(kafka, topic))
  const [starts, ends] = await Promise.all([reader.starts(topic, lanes), reader.ends(topic, lanes)])
  for (const partition of lanes) {
    for (let from = starts.get(partition) ?? 0; from < (ends.get(partition) ?? 0); ) {
      const batch = await reader.fetch({ topic, partition, from })
      for (const record of batch.records) reached.add(record)
      if (reached.size > mostReached) {
        throw new HooktideError(
          'usage',
          `more than ${mostReached} deliveries were made: too many to tell what is missing`,
          {
            remedy: 'Replay a range without onlyMissing: receivers know by the id what they had.',
          },
        )
      }
      if (batch.nextOffset <= from) break
      from = batch.nextOffset
    }
  }
  return reached
}

function inScope({ type, timeMs }: Event, { type: pattern, fromMs, toMs }: ReplayInput): boolean {
  if (pattern !== undefined && !patternMatches(pattern, type)) return false
  return (fromMs === undefined || timeMs >= fromMs) && (toMs === undefined || timeMs < toMs)
}

function withChange(subscription: Subscription, change: NonNullable<ReplayInput['shadow']>): Subscription {
  const { filter: _, ...rest } = subscription
  const filter = change.filter === undefined ? subscription.filter : change.filter
  const problems = filter == null ? [] : contentProblems({ filter })
  if (problems.length > 0) {
    throw new HooktideError('subscription.invalid', 'the filter can not be used', { problems })
  }
  return { ...rest, ...(filter == null ? {} : { filter }), types: change.types ?? subscription.types }
}

const mostExamples = 20
