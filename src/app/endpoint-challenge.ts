import { randomBytes } from 'node:crypto'
import type { Config } from '../config.ts'
import { challengeBody, challengeProblem, challengeType } from '../core/endpoint-challenge.ts'
import type { InRecord } from '../core/record.ts'
import type { Subscription } from '../core/subscription.ts'
import { EndpointAccess } from '../http/endpoint-access.ts'
import type { Resolver } from '../http/resolver.ts'
import { HttpSender } from '../http/sender.ts'
import { fetchToken } from '../http/token-request.ts'
import type { AccessState, Clock, Observer, SigningKey } from '../ports.ts'
import { decodeSecret } from '../schema/decode.ts'
import { masterKeysBehind, References } from '../secrets/references.ts'
import { SealedSecrets } from '../secrets/sealed-secrets.ts'
import { SigningSecrets } from '../secrets/signing-secrets.ts'
import { senderOptions } from './sender-options.ts'

export interface ChallengeEdge {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly resolver: Resolver
}

const silent: Observer = { log: () => undefined, count: () => undefined, time: () => undefined }

/**
 * POSTs one challenge as a delivery would be: same guard, keys, credentials. Null when it came back, else why not. `sealed`:
 * the records of the `secrets` topic.
 */
export async function challengeEndpoint(
  config: Config,
  subscription: Subscription,
  sealed: Iterable<Pick<InRecord, 'key' | 'value'>>,
  { env, clock, resolver }: ChallengeEdge,
): Promise<string | null> {
  const references = new References({ env, directory: config.secrets.directory, clock })
  const masterKeys = masterKeysBehind(config.secrets.masterKeyRef, references)
  const table = new SealedSecrets({ decode: decodeSecret, masterKeys })
  for (const record of sealed) table.apply(record)
  const secrets = new SigningSecrets({ references, sealed: table, clock, observer: silent })
  const nowMs = clock.now()
  const keys: SigningKey[] = []
  for (const { ref, fromMs = 0, untilMs = Number.POSITIVE_INFINITY } of subscription.secrets) {
    if (fromMs > nowMs || untilMs <= nowMs) continue
    const found = secrets.resolve(ref)
    if (!found.ok) return `its secret can not be read here: ${found.reason}`
    keys.push(...found.value)
  }
  if (keys.length === 0) return 'no secret of it signs now'
  const sender = new HttpSender({ ...senderOptions(config, { env, clock }), resolver })
  try {
    const accesses = new EndpointAccess({
      clock,
      observer: silent,
      secrets,
      fetchToken: (client, secret) => fetchToken(sender, client, secret),
    })
    const state = await settled(accesses, subscription)
    if (state.t !== 'ready') return state.t === 'missing' ? state.detail : 'no access token came'
    const challenge = randomBytes(24).toString('base64url')
    const reply = await sender.post({
      url: subscription.url,
      deliveryId: `challenge_${randomBytes(12).toString('base64url')}`,
      attempt: 1,
      eventType: challengeType,
      contentType: 'application/json',
      traceparent: null,
      body: challengeBody(challenge),
      headers: subscription.headers,
      keys,
      legacySignature: subscription.legacySignature,
      access: state.access ?? undefined,
      timeoutMs: subscription.timeoutMs,
    })
    return challengeProblem(reply, challenge)
  } finally {
    sender.abortAll('done')
    await sender.close()
  }
}

/** One fetch settles it either way: the sender's deadline bounds it. */
function settled(accesses: EndpointAccess, subscription: Subscription): Promise<AccessState> {
  const state = accesses.of(subscription)
  if (state.t !== 'pending') return Promise.resolve(state)
  return new Promise((resolve) => accesses.onChange(() => resolve(accesses.of(subscription))))
}
