import { classify } from '../core/classify.ts'
import type { Delivery } from '../core/delivery.ts'
import type { Outcome, Reply } from '../core/outcome.ts'
import type { SecretReference, Subscription } from '../core/subscription.ts'
import type { Span, Tracer } from '../ports/tracer.ts'
import type { Access, Accesses, AccessState, Clock, Fields, Observer, Secrets, Sender, SigningKey } from '../ports.ts'
import { makeBody } from './body-maker.ts'
import type { ClaimedBodies } from './claimed-bodies.ts'
import type { Executor } from './executor.ts'
import type { Lane } from './lane.ts'
import type { Work } from './work.ts'

export interface AttempterDeps {
  readonly clock: Clock
  readonly observer: Observer
  readonly sender: Sender
  readonly secrets: Secrets
  readonly accesses: Accesses
  readonly tracer: Tracer | null
  readonly retryAfterCapMs: number
  /** Older events are not POSTed; 0: none is too old. */
  readonly maxEventAgeMs: number
  /** Deadline of an attempt in all. */
  readonly totalTimeoutMs: number
  readonly claimed: ClaimedBodies
  subscription(id: string): Subscription | undefined
}

/**
 * Makes one POST per call: from a work that its lane has let go to the lane's `finish`. The request is handed to the
 * sender in the same synchronous step as the lane's last check.
 */
export class Attempter {
  readonly #deps: AttempterDeps

  constructor(deps: AttempterDeps) {
    this.#deps = deps
  }

  run(work: Work, executor: Executor): void {
    const { clock } = this.#deps
    const startedAtMs = clock.now()
    const attempt = work.delivery.attempts + 1
    const subscription = this.#deps.subscription(work.delivery.subscriptionId)
    const url = subscription?.url ?? ''
    const { maxEventAgeMs } = this.#deps
    const expired = maxEventAgeMs > 0 && isTooOld(work.delivery, startedAtMs - maxEventAgeMs)
    const span = this.#deps.tracer?.start('attempt', work.delivery.traceparent, spanFields(work.delivery, url)) ?? null
    const done: Done = (reply, access = null) => {
      let outcome = classify(reply, clock.now(), this.#deps.retryAfterCapMs)
      if (expired)
        outcome = { t: 'rejected', error: `expired: the event is older than ${maxEventAgeMs} ms`, status: null }
      if (access !== null && subscription !== undefined) outcome = this.#judge(subscription, access, reply, outcome)
      if (span !== null) endSpan(span, reply, outcome)
      ;(work.owner as Lane).finish(work, { attempt, startedAtMs, url, reply, outcome })
      executor.finished(work)
    }
    // The lane has just seen the subscription; were it gone, the delivery would have been cancelled.
    if (subscription === undefined) return void queueMicrotask(() => done(interrupted('subscription vanished')))
    if (expired) return void queueMicrotask(() => done(tooOld))
    const { claim, body } = work.delivery
    if (claim === undefined) {
      this.#post(work, subscription, body, span, done)
      return
    }
    const fetching = clock.mono()
    void this.#deps.claimed.fetch(claim).then((fetched) => {
      if (fetched.t === 'failed') {
        done(fetched.reply)
        return
      }
      const ended: Done = (reply, access) => {
        fetched.release()
        done(reply, access)
      }
      // Time has passed since the lane's last check: it is made again, in one step with the POST.
      const lane = work.owner as Lane
      const same = this.#deps.subscription(subscription.id) === subscription
      if (!lane.holds(work) || !executor.confirmed || !same) ended(interrupted('fetching the body took too long'))
      else this.#post(work, subscription, fetched.body, span, ended, clock.mono() - fetching)
    })
  }

  /** `spentMs`: of the attempt's deadline, fetching the body. */
  #post(work: Work, subscription: Subscription, original: Buffer, span: Span | null, done: Done, spentMs = 0): void {
    const { delivery } = work
    const keys = this.#keys(subscription)
    if (keys === null) return void queueMicrotask(() => done(secretMissing(subscription)))
    const state = this.#deps.accesses.of(subscription)
    if (state.t !== 'ready') return void queueMicrotask(() => done(noAccess(state)))
    const { access } = state
    const made = makeBody(subscription, delivery, original)
    if (made.t === 'failed') return void queueMicrotask(() => done(made.reply))
    const limitMs = subscription.timeoutMs ?? this.#deps.totalTimeoutMs
    this.#deps.sender
      .post({
        url: subscription.url,
        deliveryId: delivery.id,
        attempt: delivery.attempts + 1,
        eventType: delivery.eventType,
        contentType: made.contentType,
        traceparent: span?.traceparent ?? delivery.traceparent,
        body: made.body,
        headers: subscription.headers,
        keys,
        legacySignature: subscription.legacySignature,
        access: access ?? undefined,
        timeoutMs: spentMs === 0 ? subscription.timeoutMs : Math.max(1, limitMs - spentMs),
      })
      .then(access === null ? (reply) => done(reply) : (reply) => done(withoutSecrets(reply, access), access))
  }

  /** A 401 to a token that may have been withdrawn is no last word: the next attempt has a fresh one. */
  #judge(subscription: Subscription, access: Access, reply: Reply, outcome: Outcome): Outcome {
    if (outcome.t === 'delivered') this.#deps.accesses.accepted(subscription, access)
    if (reply.t !== 'response' || reply.status !== 401 || access.token === null) return outcome
    if (!this.#deps.accesses.refused(subscription, access)) return outcome
    return {
      t: 'retryable',
      error: '401 to the access token; the next attempt has a fresh one',
      status: 401,
      retryAfterMs: null,
    }
  }

  /** Every key whose window holds now; null when none can be had. */
  #keys(subscription: Subscription): readonly SigningKey[] | null {
    const now = this.#deps.clock.now()
    const [only] = subscription.secrets
    if (only !== undefined && subscription.secrets.length === 1) {
      const known = holds(only, now) ? this.#deps.secrets.keys(only.ref) : null
      return known === null || known.length === 0 ? null : known
    }
    const keys: SigningKey[] = []
    for (const secret of subscription.secrets) {
      if (holds(secret, now)) keys.push(...(this.#deps.secrets.keys(secret.ref) ?? []))
    }
    return keys.length === 0 ? null : keys
  }
}

/** The origin only: paths and queries hold what is nobody else's business. */
function spanFields(delivery: Delivery, url: string): Fields {
  return {
    'http.request.method': 'POST',
    'server.address': URL.parse(url)?.host,
    'hooktide.delivery.id': delivery.id,
    'hooktide.subscription.id': delivery.subscriptionId,
    'hooktide.tenant': delivery.tenant,
    'hooktide.event.id': delivery.eventId,
    'hooktide.event.type': delivery.eventType,
    'hooktide.attempt': delivery.attempts + 1,
  }
}

function endSpan(span: Span, reply: Reply, outcome: Outcome): void {
  const status = reply.t === 'response' ? reply.status : undefined
  const error = outcome.t === 'delivered' ? undefined : 'error' in outcome ? outcome.error : outcome.t
  span.end({ 'http.response.status_code': status, 'hooktide.outcome': outcome.t }, error)
}

type Done = (reply: Reply, access?: Access | null) => void

function holds(secret: SecretReference, nowMs: number): boolean {
  return (secret.fromMs ?? 0) <= nowMs && (secret.untilMs === undefined || nowMs < secret.untilMs)
}

function interrupted(detail: string): Reply {
  return { t: 'interrupted', detail, durationMs: 0 }
}

/** A job's stream has a colon, which no topic's name has: what somebody sends again is meant, whatever its age. */
function isTooOld({ eventTimeMs, origin }: Delivery, beforeMs: number): boolean {
  return eventTimeMs < beforeMs && !origin.stream.includes(':')
}

const tooOld: Reply = { t: 'failure', class: 'local', detail: 'the event is too old', durationMs: 0 }

function noAccess(state: Exclude<AccessState, { t: 'ready' }>): Reply {
  // Expired between the executor's look and this one, or fetched for another process: spends no attempt.
  if (state.t === 'pending') return interrupted('an access token is being fetched')
  return { t: 'failure', class: state.class, detail: state.detail, durationMs: 0 }
}

/** An endpoint that answers with what it was sent must not bring a credential into records and logs. */
function withoutSecrets(reply: Reply, access: Access): Reply {
  if (reply.t !== 'response' || access.confidential.length === 0) return reply
  const { excerpt, location } = reply
  const clean = scrubbed(excerpt.toString('latin1'), access)
  const cleanLocation = location === undefined ? undefined : scrubbed(location, access)
  return {
    ...reply,
    excerpt: clean === null ? excerpt : Buffer.from(clean, 'latin1'),
    ...(cleanLocation == null ? {} : { location: cleanLocation }),
  }
}

/** Null: there was nothing in it. Short ones are left: they are everywhere, and guessed anyway. */
function scrubbed(text: string, { confidential }: Access): string | null {
  let clean = text
  for (const secret of confidential) if (secret.length >= 6) clean = clean.replaceAll(secret, '***')
  return clean === text ? null : clean
}

function secretMissing(subscription: Subscription): Reply {
  const refs = subscription.secrets.map((secret) => secret.ref).join(', ')
  return {
    t: 'failure',
    class: 'secret',
    detail: `no signing secret can be had now (${refs || 'none configured'})`,
    durationMs: 0,
  }
}
