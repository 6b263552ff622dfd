import { randomBytes } from 'node:crypto'
import { HooktideError } from '../core/error.ts'
import type { Subscription } from '../core/subscription.ts'
import { maskedProblems } from './subscription-plan.ts'

export function newId(): string {
  return `sub_${randomBytes(9).toString('base64url').replace(/[-_]/g, 'x')}`
}

/** The id in the path is the one that counts; another in the body is a slip. */
export function sameId({ id }: Subscription, input: Record<string, unknown>): { readonly id: string } {
  if (input.id === undefined || input.id === id) return { id }
  throw new HooktideError('subscription.invalid', 'a subscription can not change its id', {
    problems: [{ field: 'id', value: '', message: 'is not the id it is addressed by', remedy: 'leave it out' }],
  })
}

export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function refuseMasked(input: unknown): void {
  const problems = maskedProblems(input)
  if (problems.length === 0) return
  throw new HooktideError('subscription.invalid', 'the subscription holds what was hidden', { problems })
}

export function nothingRemoved(unknown: readonly string[]): HooktideError {
  return new HooktideError('not-found', `there is no subscription ${unknown.join(', ')}; nothing was removed`, {
    remedy: '`hooktide subscriptions list` shows those there are.',
  })
}
