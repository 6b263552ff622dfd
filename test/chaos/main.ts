import { mkdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { startOwnBroker } from '../../src/broker/start.ts'
import { brokerDeps, brokerOptions } from '../support/broker-options.ts'
import { type FaultKind, faultKinds } from './plan.ts'
import { roundLine, totalLines } from './report.ts'
import { runRolling } from './rolling.ts'
import { type RoundResult, runRound } from './round.ts'

const usage = `npm run chaos -- [options]
  --rounds N      rounds to play (5)
  --seed S        seed of the first, the next ones follow (1)
  --fault F       ${faultKinds.join(', ')}, or several with commas; without it all in turn
  --records N     events per round (2000)
  --rolling       measure a rolling restart instead: three workers, 500 deliveries a second
  --json          one JSON object a round
  --stop-at-first end at the first round that fails`

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seed: { type: 'string', default: '1' },
    fault: { type: 'string', default: faultKinds.join(',') },
    records: { type: 'string', default: '2000' },
    rolling: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    'stop-at-first': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(usage)
  process.exit(0)
}
const number = (name: 'rounds' | 'seed' | 'records') => {
  const value = Number(values[name])
  if (Number.isSafeInteger(value) && value > 0) return value
  console.error(`--${name} ${values[name]}: write a whole number above 0`)
  process.exit(2)
}
const [rounds, seed, records] = [number('rounds'), number('seed'), number('records')]
const faults = values.fault.split(',') as FaultKind[]
for (const fault of faults) {
  if (faultKinds.includes(fault)) continue
  console.error(`--fault ${fault}: write ${faultKinds.join(', ')}`)
  process.exit(2)
}

const root = join(import.meta.dirname, '..', '..')
const run = `${new Date().toISOString().replace(/[:.]/g, '-')}-${process.pid}`
const folder = join(root, '.hooktide', 'chaos', run)
mkdirSync(folder, { recursive: true })
const env = { ...process.env, KAFKA_BROKERS: '', HOOKTIDE_BROKER: 'local' }
const broker = await startOwnBroker(brokerOptions(join(folder, 'broker'), { heapMb: 1024, env }), brokerDeps)
const results: RoundResult[] = []
let failed = 0
const stop = async (code: number) => {
  await broker.stop()
  process.exit(code)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop(130))
try {
  if (values.rolling) {
    const { lines, ok, json } = await runRolling({ brokers: broker.brokers, folder, seed })
    console.log(values.json ? JSON.stringify(json) : lines.join('\n'))
    if (!ok) failed++
  } else {
    for (let n = 0; n < rounds; n++) {
      const fault = faults[n % faults.length] as FaultKind
      const name = `${fault}-${seed + n}`
      const result = await runRound({
        seed: seed + n,
        fault,
        records,
        brokers: broker.brokers,
        broker,
        folder: join(folder, name),
      })
      results.push(result)
      console.log(values.json ? JSON.stringify(result) : roundLine(result))
      if (result.problems.length === 0) continue
      failed++
      const report = [...result.problems, '', ...result.story].join('\n')
      writeFileSync(join(folder, name, 'verdict.txt'), `${report}\n`)
      if (!values.json) {
        console.log(`  ${result.problems.slice(0, 10).join('\n  ')}\n    ${result.story.join('\n    ')}`)
        console.log(`  logs: ${relative(process.cwd(), join(folder, name))}`)
        console.log(`  again: npm run chaos -- --rounds 1 --seed ${seed + n} --fault ${fault} --records ${records}`)
      }
      if (values['stop-at-first']) break
    }
    if (!values.json) console.log(totalLines(results).join('\n'))
  }
} catch (error) {
  failed++
  console.error(error)
} finally {
  await stop(failed === 0 ? 0 : 1)
}
