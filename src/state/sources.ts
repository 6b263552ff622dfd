import type { SourceKind } from './fold.ts'

export interface Source {
  readonly topic: string
  readonly kind: SourceKind
}

/** Whole names of the topics that the state is folded from. */
export interface SourceTopics {
  readonly deliveries: string
  readonly tiers: readonly string[]
  readonly parked: string
  readonly dead: string
  readonly attempts: string
  readonly control: string
}

export function sourcesOf(topics: SourceTopics): readonly Source[] {
  return [
    { topic: topics.deliveries, kind: 'deliveries' },
    ...topics.tiers.map((topic) => ({ topic, kind: 'tier' as const })),
    { topic: topics.parked, kind: 'parked' },
    { topic: topics.dead, kind: 'dead' },
    { topic: topics.attempts, kind: 'attempts' },
    { topic: topics.control, kind: 'control' },
  ]
}
