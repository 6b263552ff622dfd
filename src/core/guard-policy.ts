import { type Cidr, parseCidr } from './ip.ts'
import { fail, ok, type Result } from './result.ts'

/** What an operator lets through. Never filled from subscription data. */
export interface GuardPolicy {
  readonly allowHttp: boolean
  /** Blocks that may be dialled although they are not public. */
  readonly allow: readonly Cidr[]
  /** Lower-case names that may be single-label, special-use or resolve to private addresses; `.suffix` covers what is under it. */
  readonly allowNames: readonly string[]
  /** Blocks that are never dialled (brokers, management API), whatever else says. */
  readonly deny: readonly Cidr[]
  /** Metadata services hand out credentials to whoever asks: an allow-list entry alone never opens them. */
  readonly allowMetadata: boolean
  /** 64:ff9b::/96 stands for an IPv4 address, which is then tested as one. */
  readonly allowNat64: boolean
}

export interface GuardSettings {
  readonly allowHttp?: boolean
  /** CIDR blocks, single addresses and names: `10.1.2.0/24`, `127.0.0.1`, `localhost`, `*.svc.cluster.local`. */
  readonly allowPrivate?: readonly string[]
  readonly deny?: readonly string[]
  readonly allowMetadata?: boolean
  readonly allowNat64?: boolean
}

export const strictPolicy: GuardPolicy = {
  allowHttp: false,
  allow: [],
  allowNames: [],
  deny: [],
  allowMetadata: false,
  allowNat64: false,
}

export function guardPolicy(settings: GuardSettings): Result<GuardPolicy> {
  const allow: Cidr[] = []
  const allowNames: string[] = []
  for (const entry of settings.allowPrivate ?? []) {
    const cidr = parseCidr(entry)
    if (cidr.ok) allow.push(cidr.value)
    else if (looksLikeName(entry)) allowNames.push(entry.toLowerCase().replace(/^\*/, '').replace(/\.$/, ''))
    else return fail(`allowPrivate: ${cidr.reason}, nor a host name`)
  }
  const deny: Cidr[] = []
  for (const entry of settings.deny ?? []) {
    const cidr = parseCidr(entry)
    if (!cidr.ok) return fail(`deny: ${cidr.reason}`)
    deny.push(cidr.value)
  }
  return ok({
    allowHttp: settings.allowHttp ?? false,
    allow,
    allowNames,
    deny,
    allowMetadata: settings.allowMetadata ?? false,
    allowNat64: settings.allowNat64 ?? false,
  })
}

/** `name` in lower case without a trailing dot. */
export function nameAllowed(name: string, policy: GuardPolicy): boolean {
  return policy.allowNames.some((entry) => (entry.startsWith('.') ? name.endsWith(entry) : name === entry))
}

/** A last label of digits would be an address to every URL parser, so it can't be meant as a name. */
function looksLikeName(text: string): boolean {
  return /^(\*\.|\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z_]([a-z0-9_-]{0,61}[a-z0-9_])?\.?$/i.test(text)
}
