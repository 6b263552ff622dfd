import { addressRefusal } from './address-guard.ts'
import { type GuardPolicy, nameAllowed } from './guard-policy.ts'
import { parseCidr } from './ip.ts'
import { checkUrl, type Target } from './url-rules.ts'

/** May this URL be sent to, and why (not): for people and for the moment a subscription is written. */
export interface EndpointCheck {
  readonly allowed: boolean
  /** One sentence; for an allowed URL what was found. */
  readonly reason: string
  /** False while nobody knows the addresses behind the name: `allowed` is then false for want of an answer, not by a rule. */
  readonly decided: boolean
  /** What the URL parser made of it; null when it was refused before. */
  readonly target: Pick<Target, 'href' | 'origin' | 'hostname' | 'port' | 'literal' | 'secure'> | null
  /** Every answer of the lookup with its refusal (null: may be dialled). Empty when the URL alone settles it. */
  readonly addresses: readonly { readonly address: string; readonly refusal: string | null }[]
  /** Settings, any one of which would let it through. Empty: none can, or none is needed. */
  readonly remedies: readonly string[]
  /** What a connection came to; null: none was asked for or none is allowed. Nothing is sent over it. */
  readonly connection: EndpointConnection | null
}

export interface EndpointConnection {
  readonly ok: boolean
  /** On failure class and reason, else what was agreed: `TLSv1.3, certificate of example.com by X, until 2027-01-01`. */
  readonly detail: string
}

/** The same rules in the same order as an attempt: the URL, then every answer of one lookup (null: none was made or needed). */
export function judgeEndpoint(url: string, answers: readonly string[] | null, policy: GuardPolicy): EndpointCheck {
  const target = checkUrl(url, policy)
  const none = { target: null, addresses: [], remedies: [], connection: null }
  if (!target.ok) {
    const remedies = remediesFor(url, answers, policy)
    return { ...none, allowed: false, decided: true, reason: target.reason, remedies }
  }
  const { href, origin, hostname, port, literal, secure } = target.value
  const shown = { ...none, target: { href, origin, hostname, port, literal, secure } }
  if (literal) {
    const addresses = [{ address: hostname, refusal: null }]
    return { ...shown, allowed: true, decided: true, reason: `address ${hostname} may be dialled`, addresses }
  }
  if (answers === null || answers.length === 0) {
    const reason = answers === null ? `${hostname} was not looked up` : `${hostname} has no addresses`
    return { ...shown, allowed: false, decided: false, reason }
  }
  const trusted = nameAllowed(hostname, policy)
  const addresses = answers.map((address) => ({ address, refusal: addressRefusal(address, policy, trusted) }))
  const bad = addresses.find((each) => each.refusal !== null)
  if (bad === undefined) {
    const reason = `${hostname} resolves to ${answers.join(', ')}`
    return { ...shown, allowed: true, decided: true, reason, addresses }
  }
  const reason = `${hostname} resolves to ${bad.address}: ${bad.refusal}`
  return { ...shown, allowed: false, decided: true, reason, addresses, remedies: remediesFor(url, answers, policy) }
}

/** Found by trying: what is advised here is what would really let it through. */
function remediesFor(url: string, answers: readonly string[] | null, policy: GuardPolicy): string[] {
  const steps = changes(url, answers, policy)
  const found = steps.filter(({ to }) => passes(url, answers, to(policy))).map(({ say }) => say)
  if (found.length > 0) return found
  return steps.flatMap((one, i) =>
    steps
      .slice(i + 1)
      .filter((other) => passes(url, answers, other.to(one.to(policy))))
      .map((other) => `${one.say} and ${other.say}`),
  )
}

interface Change {
  readonly say: string
  to(policy: GuardPolicy): GuardPolicy
}

function changes(url: string, answers: readonly string[] | null, policy: GuardPolicy): Change[] {
  const hostname =
    URL.parse(url)
      ?.hostname.replace(/^\[(.*)\]$/, '$1')
      .replace(/\.$/, '') ?? ''
  const found: Change[] = [{ say: 'http.allowHttp: true', to: (p) => ({ ...p, allowHttp: true }) }]
  const cidr = parseCidr(hostname)
  if (cidr.ok) {
    const say = `http.allowPrivate: ["${hostname}"]`
    found.push({ say, to: (p) => ({ ...p, allow: [...p.allow, cidr.value] }) })
  } else if (hostname !== '') {
    const say = `http.allowPrivate: ["${hostname}"]`
    found.push({ say, to: (p) => ({ ...p, allowNames: [...p.allowNames, hostname] }) })
  }
  const refused = (answers ?? []).filter((address) => addressRefusal(address, policy) !== null)
  const blocks = refused.map(parseCidr).flatMap((block) => (block.ok ? [block.value] : []))
  if (blocks.length > 0) {
    const say = `http.allowPrivate: [${refused.map((address) => `"${address}"`).join(', ')}]`
    found.push({ say, to: (p) => ({ ...p, allow: [...p.allow, ...blocks] }) })
  }
  found.push({ say: 'http.allowNat64: true', to: (p) => ({ ...p, allowNat64: true }) })
  found.push({
    say: 'http.allowMetadata: true (it hands out credentials: for tests of it only)',
    to: (p) => ({ ...p, allowMetadata: true }),
  })
  if (policy.deny.length > 0) found.push({ say: 'taking it out of http.deny', to: (p) => ({ ...p, deny: [] }) })
  return found
}

function passes(url: string, answers: readonly string[] | null, policy: GuardPolicy): boolean {
  const target = checkUrl(url, policy)
  if (!target.ok) return false
  if (target.value.literal || answers === null) return true
  const trusted = nameAllowed(target.value.hostname, policy)
  return answers.every((address) => addressRefusal(address, policy, trusted) === null)
}
