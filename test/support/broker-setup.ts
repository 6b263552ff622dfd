import { mkdir, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import type { RunningBroker } from '../../src/broker/options.ts'
import { prepareBroker, startBroker } from '../../src/broker/start.ts'
import { HooktideError, messageOf } from '../../src/core/error.ts'
import { brokerDeps, brokerOptions, testRuns } from './broker-options.ts'

/**
 * One broker for the whole run, started when the first test asks for it: a run of pure tests starts none. Test files run
 * in processes of their own, so they ask by HTTP.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await removeOldRuns()
  // A test's time-out does not cover the first download of Kafka.
  await prepareBroker(brokerOptions(testRuns), brokerDeps)
  const run = join(testRuns, `run-${process.pid}`)
  await mkdir(run, { recursive: true })
  let broker: Promise<RunningBroker> | null = null
  const server = createServer((_request, response) => {
    broker ??= startBroker(brokerOptions(join(run, 'shared'), { heapMb: 768 }), brokerDeps)
    broker.then(
      ({ brokers }) => response.end(brokers),
      (error: unknown) => {
        const details = error instanceof HooktideError ? [...error.details, error.remedy ?? ''] : []
        response.writeHead(500).end([messageOf(error), ...details].join('\n'))
      },
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  project.provide('brokerUrl', `http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  project.provide('brokerRun', run)
  return async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await broker?.then((started) => started.stop()).catch(() => undefined)
    await rm(run, { recursive: true, force: true })
  }
}

/** Folders of runs that were killed. Their brokers ended with them (see `atOurEnd`). */
async function removeOldRuns(): Promise<void> {
  for (const name of await readdir(testRuns).catch(() => [])) {
    const pid = Number(name.replace('run-', ''))
    try {
      process.kill(pid, 0)
    } catch {
      await rm(join(testRuns, name), { recursive: true, force: true })
    }
  }
}
