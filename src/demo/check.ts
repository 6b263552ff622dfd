import { answeredRequests, type Case, type Cases, caseName, groupBy, isSuccess, isUnanswered } from './cases.ts'
import type { Evidence } from './evidence.ts'

export type Rule =
  | 'events'
  | 'lost'
  | 'stranger'
  | 'identity'
  | 'settlement'
  | 'attempts'
  | 'receipt'
  | 'signature'
  | 'tier'
  | 'early'
  | 'order'
  | 'fate'

/** Something that must not be. */
export interface Finding {
  readonly rule: Rule
  readonly text: string
}

/** Judges what Kafka's logs and the receiver say of a run. Pure; empty: all is as it must be. */
export function check(evidence: Evidence, { cases, strangers }: Cases): Finding[] {
  const findings: Finding[] = []
  const note = (rule: Rule) => (text: string) => void findings.push({ rule, text })
  checkEvents(evidence, note('events'))
  for (const text of strangers) note('stranger')(text)
  for (const item of cases) {
    const say = (rule: Rule) => (text: string) => note(rule)(`${caseName(item)}: ${text}`)
    if (item.fate === 'lost') say('lost')('reached no final settlement')
    checkIdentity(item, say('identity'))
    checkSettlement(item, say('settlement'))
    checkAttempts(item, say('attempts'))
    checkReceipt(item, say('receipt'))
    checkSignatures(item, say('signature'))
    checkTiers(item, say('tier'))
    checkDue(item, say('early'))
    checkFate(item, evidence.maxAttempts, say('fate'))
  }
  checkOrder(cases, note('order'))
  checkDisabled(evidence, cases, note('fate'))
  return findings
}

type Say = (text: string) => void

function checkEvents({ events, produced, rejected }: Evidence, say: Say): void {
  if (events.length !== produced) say(`${produced} events were acknowledged, ${events.length} stand in the topic`)
  const ids = new Set(events.map(({ id }) => id))
  if (ids.size !== events.length) say(`${events.length - ids.size} event ids stand there twice`)
  for (const reason of rejected) say(`an event or delivery was rejected: ${reason}`)
}

/** One id per event and subscription, and it is the idempotency key as well. */
function checkIdentity({ deliveries, requests }: Case, say: Say): void {
  const ids = new Set(deliveries.map(({ id }) => id))
  if (ids.size > 1) say(`has several delivery ids: ${[...ids].join(', ')}`)
  for (const request of requests) {
    if (request.idempotencyKey === request.deliveryId) continue
    say(
      `request ${request.number} has Idempotency-Key "${request.idempotencyKey}", but webhook-id ${request.deliveryId}`,
    )
  }
}

/** One final settlement, as the last record, and a dead letter if and only if it says so. */
function checkSettlement({ attempts, dead }: Case, say: Say): void {
  const finals = attempts.filter(({ settlement }) => settlement !== 'scheduled')
  if (finals.length > 1) say(`settled ${finals.length} times: ${finals.map(({ settlement }) => settlement).join(', ')}`)
  const final = finals[0]
  if (final !== undefined && attempts.at(-1) !== final) say(`went on after it was ${final.settlement}`)
  const wanted = final?.settlement === 'dead' ? 1 : 0
  if (dead.length !== wanted) say(`${dead.length} dead letters, ${wanted} expected`)
  for (const letter of dead) {
    if (letter.attempts === final?.attempt) continue
    say(`the dead letter counts ${letter.attempts} attempts, the delivery log ${final?.attempt ?? 0}`)
  }
}

/** Numbers rise by one from 1, in the log and at the receiver, where one may come again. */
function checkAttempts(item: Case, say: Say): void {
  const { attempts } = item
  const logged = attempts.map(({ attempt }) => attempt)
  if (logged.some((n, i) => n !== i + 1)) say(`attempts in the log are numbered ${logged.join(', ')}`)
  const unanswered = new Set(attempts.filter(isUnanswered).map(({ attempt }) => attempt))
  let last = 0
  for (const { attempt, number } of answeredRequests(item)) {
    while (unanswered.has(last + 1)) last++
    if (attempt !== last + 1 && (attempt !== last || last === 0)) {
      say(`request ${number} is attempt ${attempt ?? 'without a number'} after ${last}`)
    }
    last = attempt ?? last
  }
}

/** What the log says was posted and answered is what the receiver got and answered. */
function checkReceipt({ event, subscription, attempts, requests }: Case, say: Say): void {
  const received = groupBy(requests, ({ attempt }) => attempt)
  for (const { attempt, outcome, status } of attempts) {
    const got = received.get(attempt)
    received.delete(attempt)
    if (outcome === null) continue
    // Without an answer it may not have got there.
    if (got === undefined && status !== null) say(`attempt ${attempt} is logged, but was not received`)
    else if (got !== undefined && status !== null && !got.some((request) => request.status === status)) {
      say(`attempt ${attempt} is logged with ${status}, but was answered ${got.map((r) => r.status).join(', ')}`)
    }
  }
  for (const [attempt] of received) say(`attempt ${attempt} was received, but is not logged`)
  const final = attempts.at(-1)?.settlement
  const answered = requests.some(({ status }) => isSuccess(status))
  if (final === 'done' && !answered) say('settled as delivered, but the receiver never answered 2xx')
  if (final === 'dead' && answered) say('dead, although the receiver answered 2xx')
  for (const { number, path, digest } of requests) {
    if (path !== subscription.path) say(`request ${number} came to ${path} instead of ${subscription.path}`)
    if (digest !== event.digest) say(`request ${number} has another body than the event`)
  }
}

function checkSignatures({ requests }: Case, say: Say): void {
  for (const { number, signatureProblem } of requests) {
    if (signatureProblem !== null) say(`request ${number}: ${signatureProblem}`)
  }
}

/** A failed delivery stands in a tier, with its count and due time, once per attempt (or more: from tier to tier). */
function checkTiers({ attempts, moves }: Case, say: Say): void {
  const scheduled = new Map(attempts.filter((a) => a.settlement === 'scheduled').map((a) => [a.attempt, a.dueMs]))
  const moved = groupBy(moves, (move) => move.attempts)
  for (const [attempt, dueMs] of scheduled) {
    const found = moved.get(attempt)
    moved.delete(attempt)
    if (found === undefined) say(`attempt ${attempt} failed and was to be made again, but stands in no tier`)
    else if (found.some((move) => move.dueMs !== dueMs)) say(`attempt ${attempt}: log and tier differ in the due time`)
  }
  for (const [attempt, [move]] of moved)
    say(`stands in ${move?.tier} after attempt ${attempt}, which the log does not have`)
}

function checkDue({ attempts, requests }: Case, say: Say): void {
  const due = new Map(attempts.map(({ attempt, dueMs }) => [attempt + 1, dueMs]))
  for (const { attempt, atMs, number } of requests) {
    const dueMs = attempt === null ? null : (due.get(attempt) ?? null)
    if (dueMs !== null && atMs < dueMs) say(`request ${number} (attempt ${attempt}) came ${dueMs - atMs} ms early`)
  }
}

/** Each endpoint is good or bad in its way; deliveries must end accordingly. */
function checkFate(item: Case, maxAttempts: number, say: Say): void {
  const { fate, attempts, dead, subscription } = item
  const letter = dead[0]
  const died = (reason: string, made: number) =>
    fate === 'dead' && letter?.reason === reason && letter.attempts === made
  // Attempts that got no answer (a machine under load) are made again whatever the endpoint is like.
  const first = 1 + attempts.filter(isUnanswered).length
  const what = `${fate} (${letter?.reason ?? 'no dead letter'}, ${letter?.attempts ?? 0} attempts)`
  if (fate === 'lost') return
  if (fate === 'cancelled') {
    say('cancelled, but nobody deleted the subscription')
    return
  }
  switch (subscription.expect) {
    case 'delivered':
      if (fate !== 'delivered' && !died('exhausted', maxAttempts)) say(`${what} instead of delivered`)
      return
    case 'rejected':
      if (!died('rejected', first)) say(`${what} instead of dead after the first answer`)
      return
    case 'gone':
      if (fate !== 'unmatched' && fate !== 'held' && !died('gone', first)) say(`${what} instead of dead after 410`)
      return
    default:
      subscription.expect satisfies never
  }
}

/** Of one key, the next event is first sent after the last answer for the one before it. */
function checkOrder(cases: readonly Case[], say: Say): void {
  const ordered = cases.filter(({ event, subscription }) => subscription.ordered && event.key !== null)
  for (const line of groupBy(ordered, ({ event, subscription }) => `${subscription.id} ${event.key}`).values()) {
    let before: Case | null = null
    let newest = 0
    for (const item of line.toSorted((a, b) => a.event.offset - b.event.offset)) {
      const requests = answeredRequests(item)
      const first = requests[0]
      if (first === undefined) continue
      if (before !== null && first.number <= newest) {
        say(
          `${caseName(item)}, key ${item.event.key}: request ${first.number} came before the last answer for ` +
            `${before.event.id}, the event before it`,
        )
      }
      before = item
      newest = Math.max(newest, ...requests.map((request) => request.newest))
    }
  }
}

/** An endpoint that is gone: disabled; from then on its events are not matched, and none before that was left out. */
function checkDisabled(evidence: Evidence, cases: readonly Case[], say: Say): void {
  for (const subscription of evidence.subscriptions) {
    const own = cases.filter((item) => item.subscription === subscription)
    if (subscription.expect !== 'gone') {
      if (subscription.status !== 'active') say(`subscription ${subscription.id} is ${subscription.status}`)
      continue
    }
    if (own.length === 0) continue
    if (subscription.status !== 'disabled')
      say(`subscription ${subscription.id} answered 410, but is ${subscription.status}`)
    if (!own.some(({ fate }) => fate === 'dead')) say(`no delivery to ${subscription.id} met its 410`)
    for (const partition of groupBy(own, ({ event }) => event.partition).values()) {
      const sorted = partition.toSorted((a, b) => a.event.offset - b.event.offset)
      const from = sorted.findIndex(({ fate }) => fate === 'unmatched')
      if (from === -1) continue
      const later = sorted.slice(from).find(({ fate }) => fate !== 'unmatched')
      if (later !== undefined) {
        say(
          `event ${sorted[from]?.event.id} was not matched with ${subscription.id}, but ${later.event.id} after it was`,
        )
      }
    }
  }
}
