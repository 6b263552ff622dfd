import type { TopicSpec } from '../../src/core/topic-spec.ts'

export interface Acl {
  readonly resource: 'topic' | 'group' | 'transactional-id'
  readonly name: string
  readonly prefixed: boolean
  readonly operation: 'READ' | 'WRITE' | 'CREATE' | 'ALTER' | 'ALTER_CONFIGS' | 'DESCRIBE' | 'DESCRIBE_CONFIGS'
}

export interface Names {
  /** Of our topics. */
  readonly prefix: string
  readonly events: string
  readonly tiers: readonly string[]
  /** Of our groups and transactional ids. */
  readonly groupPrefix: string
}

export type Role = 'router' | 'deliverer' | 'projector' | 'api' | 'cli' | 'admin'

const operating = {
  // {events}: replays are looked at before they are made. lane-state: lines.
  reads: [
    '{events}',
    'subscriptions',
    'secrets',
    'control',
    'deliveries',
    '{tier}',
    'parked',
    'lane-state',
    'dead',
    'attempts',
    'rejected',
  ],
  writes: ['{events}', 'subscriptions', 'secrets', 'control', 'deliveries'],
}

/** What each role reads and writes; docs/security-kafka.md says the same in commands. */
export const uses: Readonly<Record<Role, { readonly reads: readonly string[]; readonly writes: readonly string[] }>> = {
  // lane-state: the highest generation of its streams, when a new one begins.
  // dead, attempts, control: jobs.
  router: {
    reads: ['{events}', 'subscriptions', 'control', 'lane-state', 'dead', 'attempts'],
    writes: ['deliveries', 'rejected', 'control'],
  },
  deliverer: {
    reads: ['deliveries', '{tier}', 'parked', 'lane-state', 'subscriptions', 'secrets', 'control'],
    // subscriptions: an endpoint that answers 410 is disabled.
    writes: ['deliveries', '{tier}', 'parked', 'lane-state', 'dead', 'attempts', 'rejected', 'subscriptions'],
  },
  projector: {
    reads: ['deliveries', '{tier}', 'parked', 'dead', 'attempts', 'control', 'subscriptions'],
    writes: [],
  },
  api: operating,
  cli: operating,
  admin: { reads: [], writes: [] },
}

/** The least ACLs of a role. READ, WRITE and ALTER include DESCRIBE; ALTER_CONFIGS includes DESCRIBE_CONFIGS. */
export function leastAcls(role: Role, names: Names): Acl[] {
  const literal = (name: string, operation: Acl['operation']): Acl => {
    return { resource: 'topic', name, prefixed: false, operation }
  }
  const ours = (operation: Acl['operation']): Acl => ({ ...literal(names.prefix, operation), prefixed: true })
  const topics = (role: string) =>
    role === '{events}'
      ? [names.events]
      : role === '{tier}'
        ? names.tiers.map((tier) => names.prefix + tier)
        : [names.prefix + role]
  if (role === 'admin') {
    const events = (operation: Acl['operation']): Acl => ({ ...literal(names.events, operation), prefixed: true })
    return [
      ...(['CREATE', 'ALTER', 'ALTER_CONFIGS'] as const).map(ours),
      ...(['CREATE', 'DESCRIBE', 'DESCRIBE_CONFIGS'] as const).map(events),
    ]
  }
  const acls = [ours('DESCRIBE_CONFIGS')]
  // These read or write all of ours, which includes it.
  const isAll = role === 'deliverer' || role === 'api' || role === 'cli'
  if (!isAll) acls.push(ours('DESCRIBE'))
  if (!uses[role].reads.includes('{events}') && !uses[role].writes.includes('{events}')) {
    acls.push(literal(names.events, 'DESCRIBE'))
  }
  acls.push(literal(names.events, 'DESCRIBE_CONFIGS'))
  for (const topic of uses[role].reads.flatMap(topics)) acls.push(literal(topic, 'READ'))
  for (const topic of uses[role].writes.flatMap(topics)) acls.push(literal(topic, 'WRITE'))
  const group = (operation: Acl['operation']): Acl => {
    return { resource: 'group', name: names.groupPrefix, prefixed: true, operation }
  }
  if (role === 'cli' || role === 'api') acls.push(group('DESCRIBE'))
  else if (role !== 'projector') acls.push(group('READ'))
  if (role === 'deliverer') acls.push({ ...group('WRITE'), resource: 'transactional-id' })
  return acls
}

/** Topic names behind the words of `uses`. */
export function topicsOf(words: readonly string[], specs: readonly TopicSpec[]): string[] {
  return words.flatMap((word) => specs.filter(({ role }) => role === word).map(({ name }) => name))
}

export function aclText(acl: Acl): string {
  return `${acl.operation} on ${acl.resource} ${acl.name}${acl.prefixed ? '*' : ''}`
}
