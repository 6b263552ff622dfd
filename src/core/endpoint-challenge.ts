import type { Reply } from './outcome.ts'

/** `x-event-type` of a challenge. */
export const challengeType = 'endpoint.challenge'

/**
 * What is POSTed, signed like a delivery, to find out whether whoever runs the endpoint wants to hear from us: the text
 * must come back, alone or as `{"challenge": "…"}`. Only who reads our POSTs can know it.
 */
export function challengeBody(challenge: string): Buffer {
  return Buffer.from(JSON.stringify({ type: challengeType, challenge }))
}

/** The answer to a challenge body; null when it is none. */
export function challengeAnswer(body: Buffer): string | null {
  const challenge = challengeIn(body)
  return challenge === null ? null : JSON.stringify({ challenge })
}

/** Why the endpoint is not verified; null: it is. */
export function challengeProblem(reply: Reply, challenge: string): string | null {
  if (reply.t !== 'response') return reply.t === 'failure' ? `${reply.class}: ${reply.detail}` : reply.detail
  if (reply.status < 200 || reply.status > 299) return `it answered ${reply.status} to the challenge`
  if (reply.excerpt.toString('utf8').trim() === challenge || challengeIn(reply.excerpt) === challenge) return null
  return `it answered ${reply.status}, but not with the challenge`
}

function challengeIn(body: Buffer): string | null {
  try {
    const { challenge } = JSON.parse(body.toString('utf8')) as { challenge?: unknown }
    return typeof challenge === 'string' ? challenge : null
  } catch {
    return null
  }
}
