import type { Evidence } from './evidence.ts'
import { deliveryEvent, eventName } from './names.ts'

/** What happened to the events that `problem` names, and which faults struck meanwhile: enough to see where it went wrong. */
export function storyOf(evidence: Evidence, problem: string, lines = 30): string[] {
  const names = new Set(problem.match(/[A-Za-z0-9]+\/[^\s#]+#\d+(~\d+)?/g) ?? [])
  const told: { atMs: number; text: string }[] = []
  const tell = (atMs: number, text: string) => told.push({ atMs, text })
  const eventOf = new Map(evidence.places.map(({ delivery }) => [delivery.id, deliveryEvent(delivery)]))
  for (const p of evidence.posts) {
    if (!names.has(eventName(p))) continue
    const who = `${p.process}.${p.incarnation}`
    tell(p.startMs, `POST ${eventName(p)} attempt ${p.attempt} by ${who}: ${p.outcome} at ${p.endMs?.toFixed(1)}`)
  }
  for (const { topic, partition, offset, appendedMs, decidedMs, delivery } of evidence.places) {
    const name = deliveryEvent(delivery)
    if (!names.has(name)) continue
    const due = delivery.dueMs === null ? '' : ` due ${delivery.dueMs}`
    const at = `${topic}/${partition}@${offset}`
    tell(appendedMs, `in ${at}: ${name} after ${delivery.attempts}${due}, visible at ${decidedMs.toFixed(1)}`)
  }
  for (const { appendedMs, attempt } of evidence.settled) {
    const name = eventOf.get(attempt.deliveryId) ?? ''
    if (names.has(name)) tell(appendedMs, `settled ${name} attempt ${attempt.attempt}: ${attempt.settlement}`)
  }
  const at = problem.match(/(\S+\/\d+) went/)?.[1]
  for (const { topic, partition, offset, atMs } of evidence.positions) {
    if (`${topic}/${partition}` === at) tell(atMs, `committed ${at} at ${offset}`)
  }
  for (const { kind, process, atMs, untilMs } of evidence.faults) {
    if (kind === 'gap' || kind === 'duplicateFetch') continue
    tell(atMs, `  fault ${kind} ${process ?? ''}${untilMs > atMs ? ` until ${untilMs.toFixed(0)}` : ''}`)
  }
  told.sort((a, b) => a.atMs - b.atMs)
  const own = told.findLastIndex(({ text }) => !text.startsWith('  fault'))
  return told
    .slice(Math.max(0, own - lines + 4), own + 4)
    .map(({ atMs, text }) => `${atMs.toFixed(1).padStart(9)} ${text}`)
}
