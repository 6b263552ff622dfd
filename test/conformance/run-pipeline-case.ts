import { headerMap } from '../../src/core/record.ts'
import { delivers, failsFirst } from '../sim/endpoints.ts'
import { World } from '../sim/world.ts'

export interface PipelineResult {
  /** Null: no part of this run speaks about the case; `note` says why. */
  readonly got: string | null
  readonly note: string
}

const url = 'https://s.test/hook'
const retryBoundMs = 60_000

/**
 * Cases about what happens to a delivery between its attempts: the real pipeline on the memory broker, in simulated
 * time. The first attempt fails, then the case's change is made while the retry waits.
 */
export async function runPipelineCase(simulate: string): Promise<PipelineResult> {
  if (/max age|horizon|expired/i.test(simulate)) return tooOld()
  const change = changeOf(simulate)
  if (change === null) return { got: null, note: `nothing here simulates "${simulate}"` }
  const world = new World({ seed: 1, lanes: 2, eventPartitions: 1, workers: 1 })
  const { clock, receiver } = world
  receiver.serve(url, 's', failsFirst(1))
  receiver.serve('https://other.test/', 'other', delivers())
  await clock.drive(world.subscribe('s', { url }))
  await clock.drive(world.subscribe('other', {}))
  world.startAll()
  await clock.drive(produce(world, 0))
  const posts = () => receiver.posts.filter((post) => post.subscription === 's')
  await must(world, () => posts()[0]?.outcome === 'status 503', 'a first attempt that fails')
  return change(world, posts)
}

type Change = (world: World, posts: () => World['receiver']['posts']) => Promise<PipelineResult>

function changeOf(simulate: string): Change | null {
  if (/pause/i.test(simulate)) return paused
  if (/delet|remov|unsubscrib/i.test(simulate)) return deleted
  return /url.*chang|chang.*url/i.test(simulate) ? moved : null
}

const paused: Change = async (world, posts) => {
  await world.clock.drive(world.setStatus('s', 'paused'))
  await world.clock.drive(produce(world, 1))
  const untilMs = world.clock.mono() + retryBoundMs
  world.clock.after(retryBoundMs, () => {})
  await must(world, () => world.clock.mono() >= untilMs, 'a minute of pause')
  const whilePaused = posts().length - 1
  const others = world.receiver.posts.filter((post) => post.subscription === 'other' && post.acceptedMs !== null).length
  await world.clock.drive(world.setStatus('s', 'active'))
  await must(
    world,
    () => posts().filter((post) => post.acceptedMs !== null).length === 2,
    'both events delivered after the pause',
  )
  const attempts = posts()
    .filter((post) => post.sequence === 0)
    .map((post) => post.attempt)
  const held = whilePaused === 0 && attempts.join() === '1,2' && others === 2
  return {
    got: held ? 'held' : 'not held',
    note: `${whilePaused} POSTs while paused, attempts ${attempts.join()}, ${others} of 2 to the other subscription`,
  }
}

const deleted: Change = async (world, posts) => {
  await world.clock.drive(world.unsubscribe('s'))
  await must(world, () => world.drained(), 'everything settled after the deletion')
  const settlements = settled(world, 's').map((attempt) => String(attempt.settlement))
  const last = settlements.at(-1) ?? 'no record'
  return { got: posts().length === 1 ? last : 'sent again', note: `settlements ${settlements.join(', ')}` }
}

const moved: Change = async (world, posts) => {
  const there = 'https://s.test/moved'
  world.receiver.serve(there, 's', delivers())
  await world.clock.drive(world.subscribe('s', { url: there }))
  await must(world, () => world.drained(), 'everything settled after the change')
  const urls = posts().map((post) => post.url)
  return { got: urls.join() === `${url},${there}` ? 'delivered' : 'not delivered there', note: urls.join(' then ') }
}

/** The first attempt fails; the retry waits behind a pause until the event is too old. */
async function tooOld(): Promise<PipelineResult> {
  const settings = { maxEventAgeMs: retryBoundMs / 2 }
  const world = new World({ seed: 1, lanes: 2, eventPartitions: 1, workers: 1, settings })
  const { clock, receiver } = world
  receiver.serve(url, 's', failsFirst(1))
  await clock.drive(world.subscribe('s', { url }))
  world.startAll()
  await clock.drive(produce(world, 0))
  await must(world, () => receiver.posts[0]?.outcome === 'status 503', 'a first attempt that fails')
  await clock.drive(world.setStatus('s', 'paused'))
  const untilMs = clock.mono() + retryBoundMs
  clock.after(retryBoundMs, () => {})
  await must(world, () => clock.mono() >= untilMs, 'a minute of pause')
  await clock.drive(world.setStatus('s', 'active'))
  await must(world, () => settled(world, 's').length >= 2, 'a second settlement after the pause')
  const last = settled(world, 's').at(-1)
  const expired = String(last?.error).startsWith('expired') && receiver.posts.length === 1
  return { got: expired ? String(last?.settlement) : 'not expired', note: String(last?.error) }
}

function settled(world: World, subscriptionId: string): Record<string, unknown>[] {
  return world.broker
    .committed('attempts')
    .flatMap(({ record }) =>
      record?.value == null ? [] : [JSON.parse(record.value.toString()) as Record<string, unknown>],
    )
    .filter((attempt) => attempt.subscriptionId === subscriptionId)
}

async function produce(world: World, sequence: number): Promise<void> {
  const value = Buffer.from(JSON.stringify({ key: null, sequence }))
  const headers = headerMap([
    ['event-type', 'case.run'],
    ['event-id', `e${sequence}`],
  ])
  await world.append({ topic: 'events', partition: 0, key: null, value, headers })
}

async function must(world: World, fact: () => boolean, what: string): Promise<void> {
  const mostTimers = world.clock.fired + 500_000
  const bounded = () => {
    // Timers that set each other at no distance would stop simulated time, and so its own bound.
    if (world.clock.fired > mostTimers) throw new Error(`simulated time stands still before: ${what}`)
    return fact()
  }
  if (!(await world.clock.runUntil(bounded, 10 * retryBoundMs))) throw new Error(`never: ${what}`)
}
