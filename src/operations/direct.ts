import type { Caller, EventOperations, Operations } from './contract.ts'
import { directDead } from './direct-dead.ts'
import { directDeliveries } from './direct-deliveries.ts'
import { directJobs } from './direct-jobs.ts'
import { directLines } from './direct-lines.ts'
import { directOrders, directTiers, operatorsOnly } from './direct-orders.ts'
import { directSubscriptions } from './direct-subscriptions.ts'
import { topicNames } from './names.ts'
import type { OperationParts } from './parts.ts'
import { partitionsOf } from './read-topic.ts'
import { readStateStatus } from './state-status.ts'
import { readStatus } from './status-read.ts'
import { readPlan } from './topic-actions.ts'
import { readTopicSpecs } from './topic-folder.ts'

/** The operations over Kafka, for one caller. Cheap to make: what is costly is in the parts. */
export function directOperations(parts: OperationParts, caller: Caller): Operations {
  const { kafka, admin, config, clock, fetchText } = parts
  const dead = directDead(parts, caller)
  return {
    subscriptions: directSubscriptions(parts, caller),
    deliveries: directDeliveries(parts, caller, dead),
    dead,
    lines: directLines(parts, caller),
    tiers: directTiers(parts, caller),
    orders: directOrders(parts, caller),
    events: directEvents(parts),
    jobs: directJobs(parts, caller),
    status(metricsUrls) {
      operatorsOnly(caller)
      return readStatus({ kafka, admin }, config, clock.now(), { urls: metricsUrls, fetchText })
    },
    state: () => readStateStatus(parts, caller.tenant),
    async topics() {
      operatorsOnly(caller)
      return { topics: await readPlan(admin, await readTopicSpecs(config.topics)) }
    },
  }
}

function directEvents({ kafka, config }: OperationParts): EventOperations {
  return {
    async open(given) {
      const topic = given ?? (topicNames(config).events[0] as string)
      const partitions = await partitionsOf(kafka, topic)
      const { maxEventBytes: maxBytes, maxHeaders } = config.router
      const producer = kafka.producer()
      return {
        topic,
        partitions,
        limits: { maxBytes, maxHeaders, maxClaimBytes: config.objects.maxBytes },
        maxLargeBytes: null,
        send: (records) => producer.send(records),
        close: () => producer.close(),
      }
    },
  }
}
