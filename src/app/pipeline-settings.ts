import { type Config, leaseMs } from '../config.ts'
import { spanLimits } from '../core/offset-tracker.ts'
import { groupNames, topicNames as namesOf } from '../operations/names.ts'
import { sourceTopics } from '../pipeline/lane-topics.ts'
import type { PipelineSettings } from '../pipeline/pipeline-settings.ts'

export type Roles = PipelineSettings['roles']

/** The topics by name as commands know them; of the tiers the pipeline only wants the names, in the ladder's order. */
export function topicNames(config: Config): PipelineSettings['topics'] & { readonly secrets: string } {
  const names = namesOf(config)
  return { ...names, tiers: names.tiers.map(({ topic }) => topic) }
}

/** What the pipeline is built from. `rejectedPartitions`: as the topic has them. */
export function pipelineSettings(config: Config, roles: Roles, rejectedPartitions: number): PipelineSettings {
  const { deliverer, router, retry, kafka } = config
  const topics = topicNames(config)
  const sources = sourceTopics(topics).length
  return {
    roles,
    topics,
    maxEventAgeMs: retry.maxAgeMs,
    lanes: config.topics.lanes,
    rejectedPartitions,
    tiers: config.topics.tiers,
    policy: {
      maxAttempts: retry.maxAttempts,
      baseMs: retry.baseMs,
      factor: retry.factor,
      capMs: retry.capMs,
      retryAfterCapMs: retry.retryAfterCapMs,
    },
    groups: groupNames(config),
    transactionalIdPrefix: `${kafka.groupPrefix}lane.`,
    router: {
      maxBytes: router.maxEventBytes,
      maxHeaders: router.maxHeaders,
      maxClaimBytes: config.objects.maxBytes,
      maxWaitingRecords: 4_000,
      maxWaitingBytes: 8 * 1024 * 1024,
      maxWriteBytes: 1024 * 1024,
      commitEveryMs: router.commitEveryMs,
    },
    executor: {
      maxInFlight: deliverer.maxInFlight,
      maxInFlightBytes: deliverer.maxInFlightBytes,
      retryShare: deliverer.retryShare,
      maxPerSubscription: deliverer.perSubscription,
      maxPerOrigin: deliverer.perOrigin,
      maxPerOriginPerSecond: deliverer.perOriginPerSecond,
    },
    flow: {
      maxRecords: deliverer.bufferPerLane.records,
      maxBytes: deliverer.bufferPerLane.bytes,
      tierMaxRecords: 1_000,
      tierMaxBytes: Math.max(1024 * 1024, Math.floor(deliverer.bufferPerLane.bytes / sources)),
    },
    maxBytes: deliverer.maxBufferBytes,
    commit: {
      records: deliverer.commitRecords,
      everyMs: deliverer.commitEveryMs,
      movesEveryMs: deliverer.commitMovesEveryMs || movesEveryMs(config),
    },
    lines: { maxHeld: 64, maxBuffer: 64, maxBuffered: deliverer.bufferPerLane.records, maxOpenUnordered: 32 },
    crowd: { minShare: Math.max(8, Math.floor(deliverer.bufferPerLane.records / 16)), keep: 32, behind: 2_000 },
    circuit: {
      failures: deliverer.circuit.failures,
      failureRate: deliverer.circuit.failureRate,
      minSamples: deliverer.circuit.minSamples,
      windowMs: deliverer.circuit.windowMs,
      openMs: deliverer.circuit.openMs,
      maxOpenMs: deliverer.circuit.maxOpenMs,
    },
    failing: {
      disableAfterMs: config.subscriptions.disableAfterMs,
      failingAfterMs: config.subscriptions.failingAfterMs,
    },
    totalTimeoutMs: config.http.totalTimeoutMs,
    claims: { maxOpenBytes: config.objects.maxOpenBytes, fetchMs: config.objects.fetchTimeoutMs },
    reservedTypes: config.operationalEvents.enabled ? config.operationalEvents.typePrefix : null,
    deadCredit: deliverer.deadCredit,
    successLines: config.observe.successLines,
    span: { ...spanLimits, max: powerOfTwo(deliverer.spanOffsets) },
    drainMs: deliverer.drainMs,
    stopDrainMs: config.shutdown.drainMs,
    leaseMs: leaseMs(config),
  }
}

/**
 * Each transaction costs the broker 5 to 8 ms of CPU, however few moves it has; what a move waits for it is taken off its
 * tier's delay, so that only the shortest delay there can be grows: by a tenth.
 */
function movesEveryMs({ topics, deliverer }: Config): number {
  const shortestMs = Math.min(...topics.tiers.map(({ delayMs }) => delayMs))
  return Math.min(deliverer.commitEveryMs, 1_000, Math.max(50, Math.floor(shortestMs / 10)))
}

function powerOfTwo(atMost: number): number {
  return 2 ** Math.floor(Math.log2(atMost))
}
