import type { TopicSpec, TopicState } from './topic-spec.ts'

export interface Change {
  /** `partitions` or a topic setting. */
  readonly setting: string
  /** Null: the broker does not know the setting. */
  readonly actual: string | null
  readonly wanted: string
}

export interface Refusal extends Change {
  readonly reason: string
  /** It works, but not as safely as wanted: reported, but no ground to refuse the start. */
  readonly tolerable: boolean
}

export type TopicAction = 'ok' | 'create' | 'alter' | 'refused'

export interface TopicPlan {
  readonly topic: string
  readonly action: TopicAction
  /** Partitions and copies of a topic to be created; else what it has. */
  readonly partitions: number
  readonly replication: number
  /** What apply sets: everything of a new topic, the differences of an existing one. */
  readonly changes: readonly Change[]
  /** What nobody can change in place, or only by hand. */
  readonly refused: readonly Refusal[]
  /** Overrides that are none of ours and stay. */
  readonly kept: Readonly<Record<string, string>>
}

/** What must happen for every topic to be as specified. `brokers`: live ones. */
export function planTopics(
  specs: readonly TopicSpec[],
  actual: ReadonlyMap<string, TopicState>,
  brokers: number,
): TopicPlan[] {
  return specs.map((spec) => {
    const wanted = spec.replication ?? Math.max(1, Math.min(3, brokers))
    const state = actual.get(spec.name)
    return state === undefined ? planNew(spec, wanted) : planExisting(spec, state, wanted)
  })
}

function planNew(spec: TopicSpec, replication: number): TopicPlan {
  const changes = Object.entries(wantedConfigs(spec, replication)).map(([setting, wanted]) => {
    return { setting, actual: null, wanted }
  })
  const { name: topic, partitions } = spec
  return { topic, action: 'create', partitions, replication, changes, refused: [], kept: {} }
}

function planExisting(spec: TopicSpec, state: TopicState, wantedReplication: number): TopicPlan {
  const { partitions, replication } = state
  const base = { topic: spec.name, partitions, replication }
  // Events belong to their producers.
  if (spec.growth === 'any') return { ...base, action: 'ok', changes: [], refused: [], kept: {} }
  const changes: Change[] = []
  const refused: Refusal[] = []
  if (partitions !== spec.partitions) {
    const change = { setting: 'partitions', actual: String(partitions), wanted: String(spec.partitions) }
    const reason = partitionRefusal(spec, partitions)
    if (reason === null) changes.push(change)
    else refused.push({ ...change, reason, tolerable: false })
  }
  // More copies than wanted are no harm, and brokers that are down make us want fewer.
  if (replication < wantedReplication) {
    refused.push({
      setting: 'replication',
      actual: String(replication),
      wanted: String(wantedReplication),
      reason: 'copies are added by kafka-reassign-partitions.sh',
      tolerable: true,
    })
  }
  const wanted = wantedConfigs(spec, replication)
  for (const [setting, value] of Object.entries(wanted)) {
    const found = state.configs.get(setting)?.value ?? null
    if (found === null || !sameValue(found, value)) changes.push({ setting, actual: found, wanted: value })
  }
  const kept: Record<string, string> = {}
  for (const [name, { source, value }] of state.configs) {
    if (source === 'topic' && !(name in wanted)) kept[name] = value ?? '***'
  }
  const action = refused.length > 0 ? 'refused' : changes.length > 0 ? 'alter' : 'ok'
  return { ...base, action, changes, refused, kept }
}

/** `min.insync.replicas` follows the copies a topic has, not those it should have: else nothing could be written. */
function wantedConfigs(spec: TopicSpec, replication: number): Record<string, string> {
  return { 'min.insync.replicas': String(Math.max(1, replication - 1)), ...spec.configs }
}

function partitionRefusal(spec: TopicSpec, actual: number): string | null {
  if (actual > spec.partitions) return 'Kafka can not take partitions away; set the number to what the topic has'
  if (spec.growth === 'grow') return null
  return 'keys would change their partition; a new generation of topics (another prefix) is needed'
}

/** Lists like `compact,delete` have no order. */
function sameValue(a: string, b: string): boolean {
  const sorted = (text: string) =>
    text
      .split(',')
      .map((word) => word.trim())
      .sort()
      .join()
  return a === b || sorted(a) === sorted(b)
}

/** True when the service must not start with it: something is missing, differs, or can't be as it must. */
export function isDrift(plan: TopicPlan): boolean {
  return plan.changes.length > 0 || plan.refused.some((refusal) => !refusal.tolerable)
}

/** The difference in words, one line per fact; none for a topic that is as it should be. */
export function planLines(plan: TopicPlan): string[] {
  const { topic, action } = plan
  if (action === 'create') {
    return [`${topic}: missing; create with ${plan.partitions} partitions, ${plan.replication} copies`]
  }
  return [
    ...plan.changes.map((c) => `${topic}: ${c.setting} is ${c.actual ?? 'unknown'}, must be ${c.wanted}`),
    ...plan.refused.map(
      (r) => `${topic}: ${r.setting} is ${r.actual}, must be ${r.wanted}; can not be changed: ${r.reason}`,
    ),
  ]
}
