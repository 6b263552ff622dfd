import { randomBytes } from 'node:crypto'
import type { Env, Output, RehearsalOptions } from '../cli/deps.ts'
import { Receiver } from '../cli/receiver.ts'
import { type Config, loadConfig } from '../config.ts'
import { HooktideError } from '../core/error.ts'
import { partitionOf } from '../core/partition.ts'
import { headerMap } from '../core/record.ts'
import type { Subscription } from '../core/subscription.ts'
import type { ProcessObserver } from '../observe/observer.ts'
import { ControlStore } from '../operations/control-store.ts'
import { directJobs } from '../operations/direct-jobs.ts'
import { topicNames } from '../operations/names.ts'
import { noProgress } from '../operations/progress.ts'
import { partitionsOf, readTopic } from '../operations/read-topic.ts'
import { SubscriptionStore } from '../operations/subscription-store.ts'
import { applyPlan, readPlan } from '../operations/topic-actions.ts'
import { readTopicSpecs } from '../operations/topic-folder.ts'
import type { Clock } from '../ports.ts'
import { newSigningSecret } from '../secrets/make-secret.ts'
import { connectKafka } from './connect-kafka.ts'
import { createEndpointTools } from './endpoint-tools.ts'
import { fetchText } from './fetch-text.ts'
import { Drill, type RehearsalReport } from './rehearsal-drill.ts'
import { createSecretTools } from './secret-tools.ts'
import { startService } from './service.ts'

export interface RehearsalEdge {
  readonly clock: Clock
  readonly env: Env
  readonly observer: ProcessObserver
  readonly stderr: Output
  readonly signal: AbortSignal
}

const secretName = 'HOOKTIDE_SECRET_REHEARSAL'

/**
 * The outage one hopes not to have, on the operator's own cluster and configuration, but with topics, groups and an endpoint of
 * the rehearsal's own: nothing live is touched. Rejects when it could not be played.
 */
export async function rehearse(options: RehearsalOptions, edge: RehearsalEdge): Promise<RehearsalReport> {
  const { clock, observer, signal } = edge
  const id = `${Math.floor(clock.now()).toString(36)}-${randomBytes(2).toString('hex')}`
  const secret = newSigningSecret().reveal()
  const env = { ...edge.env, [secretName]: secret }
  const config = ownConfig(options.path, edge.env, `rehearse.${id}.`)
  const names = topicNames(config)
  const { kafka, admin, close } = connectKafka(config, env, { clock, observer })
  const undo: (() => Promise<unknown>)[] = [close]
  try {
    edge.stderr.write(`Creating the topics ${config.topics.prefix}*\n`)
    await applyPlan(admin, await readPlan(admin, await readTopicSpecs(config.topics)), () => undefined)
    const drill = new Drill({ clock, signal, note: (line) => edge.stderr.write(`${line}\n`), events: options.events })
    const receiver = new Receiver({ clock, port: 0, secretsOf: () => [secret], onRequest: drill.received })
    undo.push(() => receiver.stop())
    const port = await receiver.start()
    const subscriptions = new SubscriptionStore(kafka, names.subscriptions, clock)
    await subscriptions.read()
    const nowMs = Math.floor(clock.now())
    const subscription: Subscription = {
      v: 1,
      id: 'rehearsal',
      tenant: 'default',
      url: `http://127.0.0.1:${port}/`,
      types: ['rehearsal'],
      ordering: 'key',
      status: 'active',
      secrets: [{ ref: `env:${secretName}` }],
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
    }
    await subscriptions.write([{ id: subscription.id, subscription }])

    const producer = kafka.producer()
    undo.push(() => producer.close())
    const topic = names.events[0] as string
    const count = await partitionsOf(kafka, topic)
    const parts = {
      ...{ config, clock, kafka, admin, subscriptions, signal },
      control: new ControlStore(kafka, names.control, clock),
      secrets: createSecretTools(env, clock),
      endpoints: createEndpointTools(env, clock),
      state: null,
      progress: noProgress,
      patienceMs: null,
      fetchText: (url: string, timeoutMs: number) => fetchText(clock, url, timeoutMs),
    }
    const report = await drill.play({
      async produce(numbers) {
        const records = numbers.map((n) => {
          const headers = headerMap([
            ['event-type', 'rehearsal'],
            ['event-id', `r${n}`],
            ['content-type', 'application/json'],
          ])
          const key = `k${n % 50}`
          return { topic, partition: partitionOf(key, count), key, value: Buffer.from(JSON.stringify({ n })), headers }
        })
        for (let i = 0; i < records.length; i += 1_000) await producer.send(records.slice(i, i + 1_000))
      },
      answer: (status) => receiver.behave('/', { status }),
      startService: async () => {
        let failed: Error | null = null
        const onFatal = (error: Error) => {
          failed = error
        }
        const roles = { router: true, deliverer: true }
        const service = await startService({ config, roles, env, clock, observer, onFatal })
        undo.push(() => service.stop())
        return {
          stop: async () => {
            await service.stop()
            if (failed !== null) throw failed
          },
        }
      },
      async dead() {
        let n = 0
        const reader = kafka.reader()
        try {
          // Offsets do not count: markers of transactions take some.
          for await (const _ of readTopic(reader, names.dead)) n++
        } finally {
          await reader.close()
        }
        return n
      },
      jobs: directJobs(parts, { tenant: null, by: 'rehearsal' }),
    })
    return { ...report, prefix: config.topics.prefix }
  } finally {
    for (const step of undo.reverse()) await step().catch(() => undefined)
  }
}

/** What was configured, but for names, and for the endpoint that stands on this machine. */
function ownConfig(path: string | undefined, env: Env, prefix: string): Config {
  const own = Object.entries(env).filter(([name]) => !/^HOOKTIDE_(TOPICS_(PREFIX|EVENTS)|OBSERVE_)/.test(name))
  const { config } = loadConfig({
    env: Object.fromEntries(own),
    ...(path === undefined ? {} : { path }),
    overrides: {
      kafka: { groupPrefix: prefix },
      topics: { prefix, events: [`${prefix}events`] },
      http: { allowHttp: true, allowPrivate: ['127.0.0.1'], proxy: { url: null } },
      state: { enabled: false },
      observe: { port: 0 },
    },
  })
  if (config.topics.prefix === prefix) return config
  throw new HooktideError('internal', 'the rehearsal has no names of its own')
}
