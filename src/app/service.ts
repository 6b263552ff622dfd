import { HooktideError, messageOf } from '../core/error.ts'
import { EndpointAccess } from '../http/endpoint-access.ts'
import { HttpSender } from '../http/sender.ts'
import { fetchToken } from '../http/token-request.ts'
import { type ObserveServer, startObserveServer } from '../observe/server.ts'
import { verifyTopics } from '../operations/topic-actions.ts'
import { readTopicSpecs } from '../operations/topic-folder.ts'
import { assemblePipeline, type Pipeline } from '../pipeline/assemble.ts'
import { Table } from '../pipeline/table.ts'
import type { Kafka, TopicAdmin } from '../ports.ts'
import { decodeControl, decodeLaneState, decodeSecret, decodeSubscription } from '../schema/decode.ts'
import { masterKeysBehind, References } from '../secrets/references.ts'
import { SealedSecrets } from '../secrets/sealed-secrets.ts'
import { SigningSecrets } from '../secrets/signing-secrets.ts'
import { connectKafka } from './connect-kafka.ts'
import { PipelineHealth, readiness } from './health.ts'
import { checkObjects, openObjects } from './object-store.ts'
import { createOriginOf } from './origin-of.ts'
import { pipelineSettings, topicNames } from './pipeline-settings.ts'
import { senderOptions } from './sender-options.ts'
import type { ServiceOptions } from './service-options.ts'
import { openSubscriptionLife } from './subscription-life.ts'
import { openTraces } from './traces.ts'
import { watchPipeline } from './watch-pipeline.ts'

export interface Service {
  readonly pipeline: Pipeline
  /** Where /metrics, /healthz and /readyz listen. */
  readonly port: number
  /** Where the HTTP API listens; null: it does not. */
  readonly apiPort: number | null
  /** Graceful: stops admitting, drains, commits, leaves the groups, closes. Idempotent. */
  stop(): Promise<void>
  /** Forceful: open POSTs are cut off as `interrupted`; a running `stop` then ends soon. */
  abort(reason: string): void
}

/**
 * Builds and starts everything, in the order of dependence; a failure on the way stops what was started, in reverse.
 * Rejects with a HooktideError that says what to do: no broker, missing topics, drift, a port in use.
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, clock, observer, env } = options
  const undo: (() => Promise<unknown> | unknown)[] = []
  const unwind = async () => {
    for (const step of undo.splice(0).reverse()) {
      try {
        await step()
      } catch (error) {
        observer.log('warn', 'service.stop_failed', { error: messageOf(error) })
      }
    }
  }
  try {
    let health: PipelineHealth | null = null
    let phase: 'waiting for a broker' | 'starting' | 'running' | 'stopping' = 'waiting for a broker'
    // First of all: a probe that finds nobody would have a process restarted that only waits.
    const server: ObserveServer = await startObserveServer({
      host: config.observe.host,
      port: config.observe.port,
      metrics: () => observer.metrics(),
      health: () => health?.check() ?? { ok: true, reasons: [phase] },
      ready: () => readiness(phase, health),
      clock,
      observer,
    })
    undo.push(() => server.close())
    const { kafka, admin, close } = connectKafka(config, env, { clock, observer })
    undo.push(close)
    await waitForBroker(admin, options)
    phase = 'starting'
    const specs = await readTopicSpecs(config.topics)
    for (const warning of await verifyTopics(admin, specs, config.router.maxEventBytes)) {
      observer.log('warn', 'topics.warning', { warning })
    }

    const topics = topicNames(config)
    const rejected = (await kafka.partitions([topics.rejected])).get(topics.rejected) ?? 1
    const settings = pipelineSettings(config, options.roles, rejected)
    const objects = openObjects(config, env, clock)
    if (objects !== null && options.api === true) await checkObjects(config, objects, 'write')
    else if (objects !== null && options.roles.deliverer) await checkObjects(config, objects, 'read')
    const secrets = await openSecrets(options, kafka, topics.secrets, undo)

    const sender = new HttpSender(senderOptions(config, { env, clock }))
    undo.push(() => sender.close())
    const accesses = new EndpointAccess({
      clock,
      observer,
      secrets,
      fetchToken: (client, secret) => fetchToken(sender, client, secret),
    })

    const { life, close: closeLife } = openSubscriptionLife({
      kafka,
      clock,
      observer,
      settings,
      table: () => pipeline.subscriptions,
    })
    undo.push(closeLife)
    const traces = await openTraces(config, env, { clock, observer })
    undo.push(() => traces.close())
    const pipeline: Pipeline = assemblePipeline(settings, {
      kafka,
      clock,
      observer,
      sender,
      secrets,
      accesses,
      objects,
      tracer: traces.tracer,
      decodeSubscription,
      decodeControl,
      decodeLaneState,
      originOf: createOriginOf(),
      troubles: life,
      onFatal: options.onFatal,
    })

    health = new PipelineHealth(pipeline, clock, {
      stalledMs: config.http.totalTimeoutMs + 30_000,
      gainingMs: config.kafka.sessionTimeoutMs + 60_000,
      leaseMs: settings.leaseMs,
      outageMs: 600_000,
    })
    const watching = watchPipeline(pipeline, settings, {
      ...{ kafka, clock, observer },
      worst: config.observe.worstSubscriptions,
    })
    undo.push(() => watching.close())

    // Read only where they are wanted: they are as large as all the rest.
    if (options.projector === true) undo.push((await import('./projector.ts')).startProjector(options, kafka))
    undo.push(() => pipeline.stop())
    await pipeline.start()
    undo.push(watching.startLag())
    undo.push(watch(health, options))
    const api = options.api === true ? await (await import('./api.ts')).startApiRole(options, kafka, admin) : null
    if (api !== null) undo.push(() => api.close())
    phase = 'running'
    observer.log('info', 'service.started', {
      roles: Object.entries({ ...options.roles, projector: options.projector === true, api: api !== null })
        .flatMap(([role, on]) => (on ? [role] : []))
        .join(','),
      lanes: settings.lanes,
      subscriptions: pipeline.subscriptions.size,
      port: server.port,
    })

    let stopping: Promise<void> | null = null
    return {
      pipeline,
      port: server.port,
      apiPort: api?.port ?? null,
      stop() {
        phase = 'stopping'
        stopping ??= unwind()
        return stopping
      },
      abort: (reason) => sender.abortAll(reason),
    }
  } catch (error) {
    await unwind()
    throw error
  }
}

/** A broker that is down at the start is waited for: it may be starting too. What can't heal is told at once. */
async function waitForBroker(admin: TopicAdmin, options: ServiceOptions): Promise<void> {
  const { clock, observer, config } = options
  const untilMs = clock.mono() + startPatienceMs
  // The client tries for half a minute before it gives an answer: too long for somebody who looks at an empty log.
  const cancel = clock.after(quietMs, () => {
    observer.log('warn', 'broker.waiting', {
      brokers: config.kafka.brokers.join(','),
      reason: `no broker has answered for ${quietMs} ms`,
      forMs: startPatienceMs,
      remedy: 'Check kafka.brokers, and that the brokers are up and reachable; they are tried again and again.',
    })
  })
  try {
    for (;;) {
      try {
        await admin.cluster()
        return
      } catch (error) {
        const retry = error instanceof HooktideError && error.retry
        if (!retry || clock.mono() > untilMs) throw error
        await new Promise<void>((resolve) => clock.after(1_000, resolve))
      }
    }
  } finally {
    cancel()
  }
}

/** `env:` and `file:` references, and the `secrets` topic read to its end and followed. */
async function openSecrets(
  options: ServiceOptions,
  kafka: Kafka,
  topic: string,
  undo: (() => Promise<unknown> | unknown)[],
): Promise<SigningSecrets> {
  const { config, clock, observer, env } = options
  const references = new References({ env, directory: config.secrets.directory, clock })
  const sealed = new SealedSecrets({
    decode: decodeSecret,
    masterKeys: masterKeysBehind(config.secrets.masterKeyRef, references),
  })
  const [followReader, askReader] = [kafka.reader(), kafka.reader()]
  const table = new Table({
    topic,
    clock,
    observer,
    followReader,
    askReader,
    apply(record) {
      const applied = sealed.apply(record)
      if (applied.ok) return
      const { offset, key } = record
      const remedy = 'Write it again: hooktide secrets put.'
      const secretId = key?.toString() ?? null
      observer.log('error', 'secret.unreadable', { secretId, offset, reason: applied.reason, remedy })
    },
  })
  undo.push(async () => {
    table.stop()
    await followReader.close()
    await askReader.close()
  })
  // A router signs nothing, so it needs no right to read them.
  if (options.roles.deliverer) await table.load()
  return new SigningSecrets({ references, sealed, clock, observer })
}

/** Says in the log, once per state, what /healthz would say. */
function watch(health: PipelineHealth, { clock, observer }: ServiceOptions): () => void {
  let healthy = true
  let cancel: () => void
  const look = () => {
    const { ok, reasons } = health.check()
    if (ok !== healthy) {
      healthy = ok
      if (ok) observer.log('info', 'service.healthy')
      else observer.log('error', 'service.unhealthy', { reasons: reasons.join('; ') })
    }
    cancel = clock.after(5_000, look)
  }
  cancel = clock.after(5_000, look)
  return () => cancel()
}

const startPatienceMs = 60_000
const quietMs = 2_000
