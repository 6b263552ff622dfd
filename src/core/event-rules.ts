import type { EventProblem } from './event.ts'

/** Why an event is refused; thrown below `parseEvent` only, which turns it into a value. */
export class Refusal {
  readonly code: EventProblem
  readonly reason: string
  constructor(code: EventProblem, reason: string) {
    this.code = code
    this.reason = reason
  }
}

export const maxKeyChars = 1024

/** What is wrong with one attribute is told with its value, shortened, and the rule. */
export const rules = {
  type: (value: string) =>
    hold(
      'bad-type',
      'type',
      value,
      /^[A-Za-z0-9_][A-Za-z0-9_./:-]{0,127}$/,
      "use letters, digits, '_', '.', '/', ':' and '-', at most 128, first one a letter, digit or '_'",
    ),
  tenant: (value: string) =>
    hold(
      'bad-tenant',
      'tenant',
      value,
      /^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$/,
      "use letters, digits, '.', '_', ':' and '-', at most 100",
    ),
  contentType: (value: string) =>
    hold(
      'bad-content-type',
      'content type',
      value,
      /^(?=.{3,256}$)[A-Za-z0-9!#$&^_.+-]+\/[A-Za-z0-9!#$&^_.+-]+\s*(;[\x20-\x7e]*)?$/,
      'write type/subtype, at most 256 characters',
    ),
  id: (value: string) => text('bad-id', 'id', value, 256),
  source: (value: string) => text('bad-source', 'source', value, 1024),
  key: (value: string) => text('bad-key', 'key', value, maxKeyChars),
} as const

/** W3C Trace Context, version 00 and what later ones keep of it. */
export function isTraceparent(value: string): boolean {
  return /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/.test(value)
}

function hold(code: EventProblem, name: string, value: string, pattern: RegExp, remedy: string): void {
  if (!pattern.test(value)) throw new Refusal(code, `${name} ${shown(value)} is malformed; ${remedy}`)
}

function text(code: EventProblem, name: string, value: string, maxChars: number): void {
  if (value !== '' && value.length <= maxChars && !/\p{Cc}/u.test(value) && value.isWellFormed()) return
  const rule = `1 to ${maxChars} characters, none of them a control character`
  throw new Refusal(code, `${name} ${shown(value)} is malformed; ${rule}`)
}

function shown(value: string): string {
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}…` : value)
}
