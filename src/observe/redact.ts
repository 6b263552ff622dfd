import type { Fields } from '../ports.ts'

const maxChars = 4096
const url = /\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>\\]+/gi
/** Most strings hold none of this; one look spares them the rest. */
const suspicious = /:\/\/|whs[ek]|bearer|basic|=|"|-----/i
/** Order matters: a key block and a URL hold what the later patterns would find only a part of. */
const patterns: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, '***'],
  // Standard Webhooks: symmetric secrets and private ed25519 keys. `whpk_` is public.
  [/\b(whsec_|whsk_)[A-Za-z0-9+/=_-]*/g, '$1***'],
  [/\b(bearer)\s+[^\s"',;]+/gi, '$1 ***'],
  [/\b(basic)\s+[A-Za-z0-9+/=]{8,}/gi, '$1 ***'],
  [/\b((?:[a-z]+[_-])*(?:token|secret|password|passwd|signature|api[_-]?key|access[_-]?key))=[^\s&,;"']+/gi, '$1=***'],
  [
    /("(?:[a-z]+[_-])*(?:token|secret|password|passwd|signature|api[_-]?key|access[_-]?key|authorization)"\s*:\s*)"(?:[^"\\]|\\.)*"/gi,
    '$1"***"',
  ],
]
const secretNames = /^(?:.*[_-])?(?:authorization|cookie|password|passwd|token|api[_-]?key)$/i

/**
 * The last gate before anything leaves in a log line or a label: credentials, queries and fragments of URLs, secrets of
 * Standard Webhooks and bearer tokens. It would rather take too much than too little.
 */
export function redact(text: string): string {
  let clean = text.length > maxChars ? `${text.slice(0, maxChars)}…` : text
  if (!suspicious.test(clean)) return clean
  clean = clean.replace(url, (found) => cleanUrl(found))
  for (const [pattern, by] of patterns) clean = clean.replace(pattern, by)
  return clean
}

export function redactFields(fields: Fields): Record<string, string | number | boolean | null> {
  const clean: Record<string, string | number | boolean | null> = {}
  for (const name in fields) {
    const value = fields[name]
    if (value === undefined) continue
    if (isSecretName(name)) clean[name] = '***'
    else if (typeof value === 'string') clean[name] = redact(value)
    else clean[name] = value
  }
  return clean
}

/** Field names are few and come again with every line. */
const judged = new Map<string, boolean>()

function isSecretName(name: string): boolean {
  let secret = judged.get(name)
  if (secret === undefined) {
    secret = secretNames.test(name)
    if (judged.size < 1_000) judged.set(name, secret)
  }
  return secret
}

function cleanUrl(text: string): string {
  try {
    const { protocol, host, pathname } = new URL(text)
    return `${protocol}//${host}${pathname}`
  } catch {
    // Not a URL after all, perhaps because of what stands in its credentials: everything up to the last @ may be one.
    return text.replace(/:\/\/.*@/, '://***@').replace(/[?#].*$/, '')
  }
}
