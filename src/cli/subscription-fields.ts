import { type Command, InvalidArgumentError, Option } from 'commander'
import { type EndpointOptions, endpointFieldsOf, withEndpointOptions } from './endpoint-options.ts'
import { countArgument, durationArgument, listArgument, wordsArgument } from './options.ts'

/** Options of `add` and `update` that set fields of a subscription. */
export interface FieldOptions extends EndpointOptions {
  readonly url?: string
  readonly types?: readonly string[]
  readonly tenant?: string
  readonly ordering?: string
  readonly secret?: readonly string[]
  readonly header?: readonly string[]
  readonly timeout?: number
  readonly maxInFlight?: number
  readonly maxAttempts?: number
  readonly onDead?: string
  readonly filter?: unknown
  readonly transform?: unknown
  readonly whileDisabled?: string
  readonly disableAfter?: number
  readonly status?: string
  readonly reason?: string
  readonly description?: string
}

export function withFieldOptions(command: Command): Command {
  return withEndpointOptions(command)
    .option('--url <url>', 'where to POST')
    .option('--types <types>', 'event types: order.created, order.*, or * (repeat, or use commas)', wordsArgument)
    .option('--tenant <tenant>', 'only events of this tenant')
    .addOption(
      new Option('--ordering <mode>', 'per ordering key, one line, or none').choices(['key', 'subscription', 'none']),
    )
    .option(
      '--secret <ref>',
      'env:NAME, file:PATH, kafka:ID, or kafka:new to make one (repeat: newest first)',
      listArgument,
    )
    .option('--header <header>', 'sent with each POST, "Name: value" (repeat)', headerArgument)
    .option('--timeout <duration>', 'deadline of one attempt', durationArgument)
    .option('--max-in-flight <n>', 'most open POSTs at a time', countArgument(1, 10_000))
    .option('--max-attempts <n>', 'attempts in all, the first one included', countArgument(1, 100))
    .addOption(
      new Option('--on-dead <what>', 'what an ordered line does behind a dead head').choices(['continue', 'block']),
    )
    .option('--filter <json>', 'only events that pass, e.g. \'{"body.total": {"$gte": 100}}\'', jsonArgument)
    .option('--transform <json>', 'template of the body, e.g. \'{"id": {"$path": "body.id"}}\'', jsonArgument)
    .addOption(
      new Option('--while-disabled <what>', 'what becomes of events while it is disabled').choices(['hold', 'drop']),
    )
    .option('--disable-after <duration>', 'disabled after failing for so long; 0: never', durationArgument)
    .addOption(new Option('--status <status>', 'whether it is delivered to').choices(['active', 'paused', 'disabled']))
    .option('--reason <text>', 'why it is paused or disabled')
    .option('--description <text>', 'for people')
}

function jsonArgument(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new InvalidArgumentError('Write JSON; in a file for `subscriptions apply` it can be YAML.')
  }
}

function headerArgument(text: string, before: readonly string[] | undefined): readonly string[] {
  if (!/^[^:\s]+:\s*\S/.test(text)) throw new InvalidArgumentError('Write "Name: value".')
  return [...(before ?? []), text]
}

/** Options as fields of a record: only what was given. Secrets are the caller's, who may have to make one. */
export function fieldsOf(options: FieldOptions): Record<string, unknown> {
  const fields: Record<string, unknown> = {
    url: options.url,
    types: options.types,
    tenant: options.tenant,
    ordering: options.ordering,
    timeoutMs: options.timeout,
    maxInFlight: options.maxInFlight,
    onDead: options.onDead,
    filter: options.filter,
    transform: options.transform === undefined ? undefined : { template: options.transform },
    whileDisabled: options.whileDisabled,
    disableAfterMs: options.disableAfter,
    status: options.status,
    statusReason: options.reason,
    description: options.description,
    ...endpointFieldsOf(options),
  }
  if (options.header !== undefined) fields.headers = headersOf(options.header)
  if (options.maxAttempts !== undefined) fields.retry = { maxAttempts: options.maxAttempts }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

function headersOf(lines: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers[line.slice(0, colon)] = line.slice(colon + 1).trim()
  }
  return headers
}
