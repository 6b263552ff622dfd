/** What a topic must be. Names are whole, with their prefix. */
export interface TopicSpec {
  readonly name: string
  /** The name in the topic file: `deliveries`, `{tier}`, `{events}`. */
  readonly role: string
  readonly partitions: number
  /**
   * `never`: the partition of a key must not move (lanes, tables); `grow`: records have no key;
   * `any`: not ours once it exists (events): neither partitions nor settings are held to this spec.
   */
  readonly growth: 'never' | 'grow' | 'any'
  /** Copies; null: min(3, brokers). */
  readonly replication: number | null
  /** As the broker prints them. `min.insync.replicas` is added by the plan when absent: it depends on the copies. */
  readonly configs: Readonly<Record<string, string>>
}

export interface TopicConfig {
  readonly value: string | null
  /** `topic`: an override set on the topic itself. */
  readonly source: 'topic' | 'broker' | 'default'
}

/** What a topic is. */
export interface TopicState {
  readonly partitions: number
  /** Copies of the partition that has fewest. */
  readonly replication: number
  readonly configs: ReadonlyMap<string, TopicConfig>
}

/** How the program uses a topic, which no file can change. */
export interface TopicUse {
  readonly key: string
  readonly lanes: boolean
  readonly compact: boolean
  /** Undelivered records live in it: only time may delete them. */
  readonly holdsWork: boolean
}

const log = { key: 'subscription id', lanes: true, compact: false, holdsWork: false }
const work = { ...log, holdsWork: true }
const table = { lanes: false, compact: true, holdsWork: false }

/** Every topic there is; `{tier}` and `{events}` stand for as many as the configuration names. */
export const topicUses: Readonly<Record<string, TopicUse>> = {
  '{events}': { key: 'entity key of the producer', lanes: false, compact: false, holdsWork: false },
  subscriptions: { ...table, key: 'subscription id' },
  secrets: { ...table, key: 'secret id' },
  control: { ...table, key: 'target' },
  deliveries: work,
  '{tier}': work,
  parked: work,
  'lane-state': { key: 'line key', lanes: true, compact: true, holdsWork: false },
  dead: log,
  attempts: log,
  rejected: { key: 'none', lanes: false, compact: false, holdsWork: false },
}
