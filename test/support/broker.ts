import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { inject, onTestFinished } from 'vitest'
import type { BrokerOptions, OwnBroker } from '../../src/broker/options.ts'
import { findLocal, startOwnBroker } from '../../src/broker/start.ts'
import { brokerDeps, brokerOptions } from './broker-options.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the shared broker can be asked for; see broker-setup.ts. */
    brokerUrl: string
    /** Folder of this run. */
    brokerRun: string
  }
}

/** The broker that all tests of this run share; the first caller waits for its start. Use unique topic names. */
export async function testBroker(): Promise<{ readonly brokers: string }> {
  const response = await fetch(inject('brokerUrl'), { signal: AbortSignal.timeout(110_000) })
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return { brokers: text }
}

/** Null where Kafka can run as a Java process, which some tests need; else the reason, for the tests to skip by. */
export async function whyNoLocalBroker(): Promise<string | null> {
  const found = await findLocal(brokerDeps, brokerOptions(inject('brokerRun')))
  if (!found.ok) console.warn(`Skipped: needs Java and Maven (${found.reason})`)
  return found.ok ? null : found.reason
}

let count = 0

/**
 * A broker of the caller's own, to kill, pause, restart or secure. Inside a test it is stopped at the test's end; in a
 * `beforeAll` return its `stop`. Always a process of ours, whatever KAFKA_BROKERS says.
 */
export async function ownBroker(options: Partial<BrokerOptions> = {}): Promise<OwnBroker> {
  const dataDir = join(inject('brokerRun'), `own-${process.pid}-${++count}`)
  await mkdir(dataDir, { recursive: true })
  const env: Record<string, string | undefined> = { ...process.env, ...options.env, KAFKA_BROKERS: '' }
  if (env.HOOKTIDE_BROKER === 'url') env.HOOKTIDE_BROKER = ''
  const broker = await startOwnBroker(brokerOptions(dataDir, { heapMb: 384, ...options, env }), brokerDeps)
  const close = async () => {
    await broker.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
  try {
    onTestFinished(close)
  } catch {
    // Not inside a test: the caller stops it, or the end of this process does.
  }
  return broker
}
