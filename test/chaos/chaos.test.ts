import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import type { OwnBroker } from '../../src/broker/options.ts'
import { ownBroker, whyNoLocalBroker } from '../support/broker.ts'
import { roundLine } from './report.ts'
import { runRound } from './round.ts'

/** A short part of what `npm run chaos` plays by hand: see docs/reliability.md. */
const skipped = (await whyNoLocalBroker()) !== null
const records = 300
const seed = 1
let broker: OwnBroker

beforeAll(async () => {
  if (!skipped) broker = await ownBroker({ heapMb: 512 })
}, 120_000)
afterAll(() => broker?.stop())

test.skipIf(skipped).for([
  ['kill', 'two or three workers, some killed with -9 while events flow: nothing lost, repeats only of what was open'],
  ['term', 'workers restarted with SIGTERM: nothing lost, nothing sent twice'],
  ['stop', 'a worker stopped for longer than its session: what it does when it wakes changes nothing'],
  ['broker', 'the broker killed and restarted: every process goes on, every move is in the log once'],
] as const)('%s: %s', { timeout: 150_000 }, async ([fault]) => {
  const folder = join(inject('brokerRun'), `chaos-${fault}`)
  await mkdir(folder, { recursive: true })
  const result = await runRound({ seed, fault, records, brokers: broker.brokers, broker, folder })
  console.log(roundLine(result))
  const again = `npm run chaos -- --rounds 1 --seed ${seed} --fault ${fault} --records ${records}`
  expect(result.problems.slice(0, 20), [again, ...result.story].join('\n')).toEqual([])
})
