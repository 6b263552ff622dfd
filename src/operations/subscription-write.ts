import { HooktideError } from '../core/error.ts'
import { type GuardPolicy, guardPolicy } from '../core/guard-policy.ts'
import type { Subscription } from '../core/subscription.ts'
import { type InputContext, validateSubscriptionInput } from '../schema/subscription-input.ts'
import { topicNames } from './names.ts'
import type { OperationParts } from './parts.ts'
import type { SubscriptionPlan } from './subscription-plan.ts'
import { type MadeSecret, makeSealedSecret } from './subscription-secret.ts'

export function guardOf({ config }: OperationParts): GuardPolicy {
  const policy = guardPolicy(config.http)
  if (!policy.ok) throw new HooktideError('config.invalid', `http: ${policy.reason}`)
  return policy.value
}

export function checkedInput(input: unknown, context: InputContext): Subscription {
  const checked = validateSubscriptionInput(input, context)
  if (checked.ok) return checked.value
  const count = checked.problems.length === 1 ? 'a problem' : `${checked.problems.length} problems`
  throw new HooktideError('subscription.invalid', `the subscription has ${count}`, {
    problems: checked.problems,
    remedy: 'Correct every line named.',
  })
}

/** Makes the secrets that `kafka:new` asks for; called when everything else is known to be good. */
export async function makeAsked(
  parts: OperationParts,
  checked: Subscription,
): Promise<{ readonly subscription: Subscription; readonly made: readonly MadeSecret[] }> {
  const secrets = [...checked.secrets]
  const made: MadeSecret[] = []
  for (const [i, secret] of secrets.entries()) {
    if (secret.ref !== 'kafka:new') continue
    const { kafka, config, clock, secrets: tools } = parts
    const one = await makeSealedSecret({ kafka, config, clock, tools }, topicNames(config).secrets, checked.id)
    made.push(one)
    secrets[i] = { ...secret, ref: one.ref }
  }
  return { subscription: { ...checked, secrets }, made }
}

/** Subscriptions that would be sent to where they were not before. */
export function newEndpoints(plan: SubscriptionPlan): Subscription[] {
  return plan.items.flatMap(({ action, changes, subscription }) =>
    subscription !== null && (action === 'create' || changes.some(({ field }) => field === 'url' || field === 'record'))
      ? [subscription]
      : [],
  )
}
