import { type Service, startService } from '../app/service.ts'
import type { Output } from '../cli/deps.ts'
import { Receiver } from '../cli/receiver.ts'
import type { Env } from '../config/read.ts'
import type { Config } from '../config.ts'
import { HooktideError, messageOf } from '../core/error.ts'
import { patternMatches } from '../core/match-index.ts'
import type { ProcessObserver } from '../observe/observer.ts'
import { topicNames } from '../operations/names.ts'
import { partitionsOf } from '../operations/read-topic.ts'
import { SubscriptionStore } from '../operations/subscription-store.ts'
import type { Clock, Kafka } from '../ports.ts'
import { AttemptsTail } from './attempts-tail.ts'
import { type Part, pathOf, subscriptionOf } from './cast.ts'
import { Display } from './display.ts'
import { type Example, eventRecord } from './examples.ts'
import { Journal, type Request } from './journal.ts'
import { secretName } from './setting.ts'

export interface PlayOptions {
  readonly config: Config
  readonly env: Env
  readonly clock: Clock
  readonly observer: ProcessObserver
  /** A connection of the demo's own. */
  readonly kafka: Kafka
  readonly signal: AbortSignal
  readonly stderr: Output
  readonly id: string
  readonly secret: string
  readonly cast: readonly Part[]
  readonly examples: readonly Example[]
  readonly events: number
  readonly perSecond: number
}

export interface Played {
  readonly produced: number
  readonly requests: readonly Request[]
  /** Nothing moved any more, although not all was settled. */
  readonly stalled: boolean
}

const stalledMs = 30_000
const readyMs = 60_000

/** Receiver, subscriptions, service, events; until all is settled or nothing moves. Everything it started is stopped then. */
export async function runPlay(options: PlayOptions): Promise<Played> {
  const { clock, cast, kafka, config, observer, signal, secret } = options
  const topics = topicNames(config)
  const journal = new Journal(secret)
  // An endpoint each, so that what one does falls on no other: limits and circuits are per origin, too.
  const receivers = cast.map(
    (part) =>
      new Receiver({
        clock,
        port: 0,
        secretsOf: () => [secret],
        behaviours: new Map([[pathOf(part), part.behaviour]]),
        onRequest: journal.add,
      }),
  )
  const undo: (() => Promise<unknown>)[] = [() => Promise.all(receivers.map((receiver) => receiver.stop()))]
  let failed: Error | null = null
  try {
    const ports = await Promise.all(receivers.map((receiver) => receiver.start()))
    const store = new SubscriptionStore(kafka, topics.subscriptions, clock)
    await store.read()
    await store.write(
      cast.map((part, i) => ({
        id: part.id,
        subscription: subscriptionOf(part, ports[i] as number, `env:${secretName}`, clock.now()),
      })),
    )
    const service = await startService({
      config,
      roles: { router: true, deliverer: true },
      env: options.env,
      clock,
      observer,
      onFatal(error) {
        failed ??= error
      },
    })
    undo.push(() => service.stop())
    const reader = kafka.reader()
    undo.push(() => reader.close())
    const tail = new AttemptsTail(reader, topics.attempts)
    const display = new Display(options.stderr, clock)
    const { pipeline } = service

    await untilReady(options, service)
    let produced = 0
    const expected = new Map<string, number>(cast.map(({ id }) => [id, 0]))
    let over = false
    const producing = produceEvents(
      options,
      () => over,
      (records) => {
        for (const { type } of records) {
          for (const part of cast) {
            if (part.types.some((pattern) => patternMatches(pattern, type)))
              expected.set(part.id, (expected.get(part.id) ?? 0) + 1)
          }
        }
        produced += records.length
      },
    )
    producing.catch((error: Error) => {
      failed ??= error
    })
    undo.push(async () => {
      over = true
      await producing.catch(() => undefined)
    })

    const isOver = (part: Part) => {
      if (part.expect === 'gone') return pipeline.subscriptions.get(part.id)?.status === 'disabled'
      return tail.of(part.id).settled >= (expected.get(part.id) ?? 0)
    }
    let movedMs = clock.mono()
    let seen = ''
    let stalled = false
    try {
      for (;;) {
        signal.throwIfAborted()
        if (failed !== null) throw failed
        await tail.poll()
        const vitals = observer.vitals()
        display.show({
          produced,
          events: options.events,
          inFlight: vitals.inFlight.count,
          subscriptions: cast.map(({ id }) => ({ id, expected: expected.get(id) ?? 0, standing: tail.of(id) })),
          tiers: vitals.tiers,
        })
        if (produced === options.events && cast.every(isOver) && pipeline.executor.inFlight === 0) break
        const now = `${produced} ${tail.attempts}`
        if (now !== seen) movedMs = clock.mono()
        seen = now
        if (clock.mono() - movedMs > stalledMs) {
          stalled = true
          break
        }
        await sleep(clock, 100)
      }
    } finally {
      display.end()
    }
    return { produced, requests: journal.requests, stalled }
  } finally {
    for (const step of undo.reverse()) {
      await step().catch((error: unknown) => observer.log('error', 'demo.stop_failed', { error: messageOf(error) }))
    }
  }
}

/** Every lane gained, every events partition read: what is measured then is the work, not the start. */
async function untilReady({ config, clock, observer, signal }: PlayOptions, { pipeline }: Service): Promise<void> {
  const deadlineMs = clock.mono() + readyMs
  for (;;) {
    signal.throwIfAborted()
    const running = observer.vitals().lanes.filter(({ state }) => state === 'running').length
    if (running === config.topics.lanes && [...(pipeline.router?.streams ?? [])].length > 0) return
    if (clock.mono() > deadlineMs) {
      throw new HooktideError(
        'check.failed',
        `only ${running} of ${config.topics.lanes} lanes run after ${readyMs / 1000} s`,
        {
          remedy: 'See .hooktide/demo.log for what they wait for.',
        },
      )
    }
    await sleep(clock, 50)
  }
}

/** At an even rate; `acknowledged` is told of each batch that stands in the topic. */
async function produceEvents(
  { kafka, clock, config, examples, events, perSecond, id }: PlayOptions,
  isOver: () => boolean,
  acknowledged: (batch: readonly Example[]) => void,
): Promise<void> {
  const topic = config.topics.events[0] as string
  const to = { topic, partitions: await partitionsOf(kafka, topic), run: id }
  const producer = kafka.producer()
  try {
    const startMs = clock.mono()
    for (let next = 0; next < events && !isOver(); ) {
      const due = Math.min(events, Math.ceil(((clock.mono() - startMs) / 1000) * perSecond))
      if (due > next) {
        const numbers = Array.from({ length: due - next }, (_, i) => next + i)
        await producer.send(numbers.map((number) => eventRecord(examples, number, to)))
        acknowledged(numbers.map((number) => examples[number % examples.length] as Example))
        next = due
      }
      await sleep(clock, 20)
    }
  } finally {
    await producer.close()
  }
}

function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve))
}
