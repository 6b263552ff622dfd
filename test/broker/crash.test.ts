import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { answersKafka } from '../../src/broker/handshake.ts'
import { findRunning } from '../../src/broker/run-file.ts'
import { startBroker, startOwnBroker } from '../../src/broker/start.ts'
import { waitUntil } from '../../src/broker/wait.ts'
import { whyNoLocalBroker } from '../support/broker.ts'
import { brokerDeps, brokerOptions } from '../support/broker-options.ts'
import { realClock } from '../support/clock.ts'

const env = { ...process.env, KAFKA_BROKERS: '', HOOKTIDE_BROKER: 'local' }
const children: ChildProcess[] = []
let dataDir: string
const noJava = (await whyNoLocalBroker()) !== null

beforeAll(async () => {
  dataDir = join(inject('brokerRun'), `crash-${process.pid}`)
  await mkdir(dataDir, { recursive: true })
})
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await rm(dataDir, { recursive: true, force: true })
})

function options(more = {}) {
  return brokerOptions(dataDir, { env, heapMb: 256, ...more })
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function startInOtherProcess() {
  const script = join(import.meta.dirname, 'owner.fixture.ts')
  const child = spawn(process.execPath, [script, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  for await (const line of createInterface({ input: child.stdout })) {
    return { child, ...(JSON.parse(line) as { brokers: string; pid: number }) }
  }
  throw new Error('the fixture ended without a word')
}

const serves = (brokers: string) => {
  const [host, port] = brokers.split(':') as [string, string]
  return answersKafka(realClock, host, Number(port), 5000)
}

test.skipIf(noJava)(
  'a broker ends with its owner, also by kill -9, and the next start goes on with its data, port taken or not',
  async () => {
    const first = await startInOtherProcess()
    expect(await serves(first.brokers)).toBe(true)

    // While the owner lives, others find the broker and do not end it.
    const found = await startBroker(options(), brokerDeps)
    expect(found).toMatchObject({ brokers: first.brokers, owned: false, pid: first.pid })
    await found.stop()
    expect(alive(first.pid)).toBe(true)
    await expect(startOwnBroker(options(), brokerDeps)).rejects.toThrow(/uses .* already/)

    first.child.kill('SIGKILL')
    expect(await waitUntil(realClock, () => !alive(first.pid), { timeoutMs: 10_000, everyMs: 50 })).toBe(true)
    expect(await findRunning(brokerDeps, options())).toBe(null)

    // The old port belongs to someone else now, the lock file and the run file are stale.
    const squatter = createServer().listen(Number(first.brokers.split(':')[1]), '127.0.0.1')
    await writeFile(join(dataDir, 'start.lock'), '{"pid":999999999,"started":null}')
    const cluster = await readFile(join(dataDir, 'data', 'meta.properties'), 'utf8')
    const second = await startOwnBroker(options(), brokerDeps)
    squatter.close()
    expect(second.brokers).not.toBe(first.brokers)
    expect(await serves(second.brokers)).toBe(true)
    expect(await readFile(join(dataDir, 'data', 'meta.properties'), 'utf8')).toBe(cluster)

    // A living leftover of a dead owner (its watchdog died too) is ended; the address stays.
    const runFile = join(dataDir, 'broker.json')
    const leftover = { ...JSON.parse(await readFile(runFile, 'utf8')), owner: 999_999_999 }
    await writeFile(runFile, JSON.stringify(leftover))
    const third = await startOwnBroker(options(), brokerDeps)
    expect(alive(second.pid as number)).toBe(false)
    expect(third.brokers).toBe(second.brokers)
    expect(await serves(third.brokers)).toBe(true)
    await third.stop()
    expect(alive(third.pid as number)).toBe(false)
  },
  110_000,
)

test.skipIf(noJava)(
  'a process that is no broker of this folder is never signalled, and damaged data is put aside',
  async () => {
    const bystander = spawn('sleep', ['100'], { stdio: 'ignore' })
    children.push(bystander)
    await writeFile(
      join(dataDir, 'broker.json'),
      JSON.stringify({ kind: 'local', pid: bystander.pid, port: 1, secure: {}, owner: 1e9 }),
    )
    await writeFile(join(dataDir, 'data', 'meta.properties'), '')
    const broker = await startOwnBroker(options(), brokerDeps)
    expect(alive(bystander.pid as number)).toBe(true)
    expect(await serves(broker.brokers)).toBe(true)
    expect(await readdir(dataDir)).toContain('data.damaged-1')

    // The scripted faults.
    await broker.kill()
    expect(await serves(broker.brokers)).toBe(false)
    await broker.restart()
    expect(await serves(broker.brokers)).toBe(true)
    broker.pause()
    const [host, port] = broker.brokers.split(':') as [string, string]
    // Threads stop one by one.
    const frozen = async () => !(await answersKafka(realClock, host, Number(port), 300))
    expect(await waitUntil(realClock, frozen, { timeoutMs: 5000, everyMs: 20 })).toBe(true)
    broker.resume()
    expect(await serves(broker.brokers)).toBe(true)
    await Promise.all([broker.stop(), broker.stop()])
  },
  110_000,
)
