import type { Config } from '../config.ts'

/** Whole names of Hooktide's topics under a configuration. */
export interface TopicNames {
  readonly events: readonly string[]
  readonly subscriptions: string
  readonly secrets: string
  readonly control: string
  readonly deliveries: string
  readonly tiers: readonly { readonly topic: string; readonly delayMs: number }[]
  readonly parked: string
  readonly laneState: string
  readonly dead: string
  readonly attempts: string
  readonly rejected: string
}

export function topicNames(config: Config): TopicNames {
  const { prefix, events, tiers } = config.topics
  return {
    events,
    subscriptions: `${prefix}subscriptions`,
    secrets: `${prefix}secrets`,
    control: `${prefix}control`,
    deliveries: `${prefix}deliveries`,
    tiers: tiers.map(({ name, delayMs }) => ({ topic: prefix + name, delayMs })),
    parked: `${prefix}parked`,
    laneState: `${prefix}lane-state`,
    dead: `${prefix}dead`,
    attempts: `${prefix}attempts`,
    rejected: `${prefix}rejected`,
  }
}

/** Consumer groups of the service. */
export function groupNames(config: Config): { readonly router: string; readonly deliverer: string } {
  return { router: `${config.kafka.groupPrefix}router`, deliverer: `${config.kafka.groupPrefix}deliverer` }
}
