import { parseAllDocuments } from 'yaml'
import { HooktideError, messageOf } from '../core/error.ts'

/**
 * Subscriptions out of a text: YAML (one or more documents), JSON or NDJSON; each document a subscription, a list of them,
 * or `{subscriptions: [...]}`. Throws `subscription.invalid` naming the line of what is no such text.
 */
export function parseSubscriptionFile(text: string, label: string): unknown[] {
  const documents = isNdjson(text) ? ndjson(text, label) : yaml(text, label)
  const items = documents.flatMap((document) => {
    if (document === null || document === undefined) return []
    if (Array.isArray(document)) return document as unknown[]
    const { subscriptions } = document as { subscriptions?: unknown }
    return Array.isArray(subscriptions) ? (subscriptions as unknown[]) : [document]
  })
  if (items.length > 0) return items
  throw invalid(`${label} holds no subscriptions`, 'Write at least one, or remove them with `subscriptions remove`.')
}

function isNdjson(text: string): boolean {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return lines.length > 1 && lines.every((line) => /^\s*\{.*\}\s*$/.test(line))
}

function ndjson(text: string, label: string): unknown[] {
  return text.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return []
    try {
      return [JSON.parse(line) as unknown]
    } catch (error) {
      throw invalid(`${label} line ${i + 1} is no JSON: ${messageOf(error)}`, 'Correct the line.')
    }
  })
}

/** JSON is YAML, too. */
function yaml(text: string, label: string): unknown[] {
  const documents = parseAllDocuments(text)
  if (!Array.isArray(documents)) return []
  return documents.map((document) => {
    const error = document.errors[0]
    if (error !== undefined) {
      throw invalid(`${label} is no YAML or JSON: ${error.message.split('\n')[0]}`, 'Correct the line named.')
    }
    return document.toJS({ maxAliasCount: 20 }) as unknown
  })
}

function invalid(message: string, remedy: string): HooktideError {
  return new HooktideError('subscription.invalid', message, { remedy })
}
