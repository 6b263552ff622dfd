import { fail, ok, type Result } from './result.ts'

const maxHeaders = 32
const maxNameChars = 128
const maxTotalChars = 8192

/** Names that belong to Hooktide, to the connection, or to the framing of the message. Lower case. */
const reserved: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'content-length',
  'content-type',
  'content-encoding',
  'accept-encoding',
  'expect',
  'date',
  'user-agent',
  'idempotency-key',
  'x-delivery-attempt',
  'x-event-type',
  'traceparent',
  'tracestate',
  'alt-used',
  'metadata',
  'metadata-flavor',
])

/** `x-aws-ec2-metadata-*` and its like are keys to metadata services: never of use at a webhook endpoint. */
const reservedPrefixes = [
  'webhook-',
  'proxy-',
  'x-aws-ec2-metadata-',
  'x-google-metadata-',
  'x-metadata-',
  'sec-',
  'svix-',
]

/** May a subscription send these headers of its own? All problems in one reason, each with the header's name. */
export function checkCustomHeaders(headers: unknown): Result<Readonly<Record<string, string>>> {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers))
    return fail('headers must be an object of names and text values')
  const problems: string[] = []
  const seen = new Set<string>()
  let total = 0
  const entries = Object.entries(headers)
  if (entries.length > maxHeaders) problems.push(`${entries.length} headers, at most ${maxHeaders} are allowed`)
  for (const [name, value] of entries) {
    const problem = headerProblem(name, value)
    const lower = name.toLowerCase()
    if (problem !== null) problems.push(`header ${JSON.stringify(name.slice(0, 60))} ${problem}`)
    else if (seen.has(lower)) problems.push(`header ${name} stands there twice`)
    seen.add(lower)
    total += name.length + String(value).length
  }
  if (total > maxTotalChars) problems.push(`headers of ${total} characters, at most ${maxTotalChars} are allowed`)
  return problems.length === 0 ? ok(headers as Record<string, string>) : fail(problems.join('; '))
}

function headerProblem(name: string, value: unknown): string | null {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return 'has a character that header names may not contain'
  if (name.length > maxNameChars) return `is longer than ${maxNameChars} characters`
  const lower = name.toLowerCase()
  if (reserved.has(lower)) return 'is set by Hooktide or by the connection and may not be replaced'
  const prefix = reservedPrefixes.find((start) => lower.startsWith(start))
  if (prefix !== undefined) return `is reserved (${prefix}*)`
  if (typeof value !== 'string') return 'must have a text value'
  if (!isHeaderValue(value)) return 'has a value with control or non-ASCII characters (CR, LF and NUL included)'
  return null
}

/** Printable ASCII, space and tab; nothing at the ends that a receiver would trim. */
export function isHeaderValue(value: string): boolean {
  return /^[\t\x20-\x7e]*$/.test(value) && value.trim() === value
}
