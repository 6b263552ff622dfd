import { classify } from '../core/classify.ts'
import type { Reply } from '../core/outcome.ts'
import type { SecretReference, Subscription } from '../core/subscription.ts'
import type { Clock, Observer, Secrets, Sender, SigningKey } from '../ports.ts'
import type { Executor } from './executor.ts'
import type { Lane } from './lane.ts'
import type { Work } from './work.ts'

export interface AttempterDeps {
  readonly clock: Clock
  readonly observer: Observer
  readonly sender: Sender
  readonly secrets: Secrets
  readonly retryAfterCapMs: number
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
    const done = (reply: Reply) => {
      const outcome = classify(reply, clock.now(), this.#deps.retryAfterCapMs)
      ;(work.owner as Lane).finish(work, { attempt, startedAtMs, url, reply, outcome })
      executor.finished(work)
    }
    // The lane has just seen the subscription; were it gone, the delivery would have been cancelled.
    if (subscription === undefined) return void queueMicrotask(() => done(interrupted('subscription vanished')))
    const keys = this.#keys(subscription)
    if (keys === null) return void queueMicrotask(() => done(secretMissing(subscription)))
    const { delivery } = work
    this.#deps.sender
      .post({
        url,
        deliveryId: delivery.id,
        attempt,
        eventType: delivery.eventType,
        contentType: delivery.contentType,
        traceparent: delivery.traceparent,
        body: delivery.body,
        headers: subscription.headers,
        keys,
        timeoutMs: subscription.timeoutMs,
      })
      .then(done)
  }

  /** Every key whose window holds now; null when none can be had. */
  #keys(subscription: Subscription): SigningKey[] | null {
    const now = this.#deps.clock.now()
    const keys: SigningKey[] = []
    for (const secret of subscription.secrets) {
      if (holds(secret, now)) keys.push(...(this.#deps.secrets.keys(secret.ref) ?? []))
    }
    return keys.length === 0 ? null : keys
  }
}

function holds(secret: SecretReference, nowMs: number): boolean {
  return (secret.fromMs ?? 0) <= nowMs && (secret.untilMs === undefined || nowMs < secret.untilMs)
}

function interrupted(detail: string): Reply {
  return { t: 'interrupted', detail, durationMs: 0 }
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
