import { Agent, request } from 'node:http'
import { sleep } from './clock.ts'
import { createBodies } from './events.ts'
import { load, memory } from './machine.ts'
import { monoMs } from './mono.ts'
import { type Figures, Rows } from './result.ts'
import type { Scenario } from './scenario.ts'
import { quantile } from './stats.ts'
import { perThousand, read } from './usage.ts'
import { type Stage, World } from './world.ts'

const perSecond = 500
const seconds = 15
const warmSeconds = 6
const bytes = 1024

/** Each event its own request, as its users send them: evenly paced, whether the last one was answered or not. */
export const ingest: Scenario = {
  name: 'ingest',
  about: `POST /v1/events at ${perSecond}/s for ${seconds} s, one event each, to the acknowledgement of Kafka (acks=all); produce: the same to Kafka directly`,
  async run(stage, settings) {
    const rows = new Rows()
    const world = await World.open(stage, {
      name: 'ingest',
      api: { listen: '127.0.0.1:0', auth: 'off' },
      subscriptions: (origin) => [{ id: 'one', url: `${origin}/ok`, ordering: 'key' }],
    })
    try {
      for (let round = 0; round < settings.rounds; round++) {
        settings.note(`ingest, round ${round + 1} of ${settings.rounds}, load ${load().toFixed(1)}`)
        const plain = await direct(world)
        const api = await throughApi(world, stage)
        rows.add('produce', plain)
        // What the machine and the broker take is in both.
        rows.add('API', { ...api, 'p99 ÷ produce': (api['p99 ms'] as number) / (plain['p99 ms'] as number) })
      }
    } finally {
      await world.close()
    }
    return { rows: rows.all(), targets: [{ row: 'API', figure: 'p99 ms', atMost: 30 }] }
  },
}

async function direct(world: World): Promise<Figures> {
  const fill = createBodies(bytes)
  const send = (n: number) => world.produce([{ id: 'none', key: `k${n % 1000}`, body: fill(n, n % 1000, 0) }])
  await paced(warmSeconds, send)
  return figures(await paced(seconds, send))
}

async function throughApi(world: World, stage: Stage): Promise<Figures> {
  const hooktide = await world.start({ roles: 'api' })
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  try {
    const port = hooktide.lines('api.listening')[0]?.port as number
    const data = 'x'.repeat(bytes - 20)
    const send = (n: number) => post(agent, port, { type: 'none', key: `k${n % 1000}`, data: { n, data } })
    await paced(warmSeconds, send)
    const processes = { api: hooktide.pid, broker: stage.broker.pid ?? null }
    const from = read(processes)
    const took = await paced(seconds, send)
    const to = read(processes)
    return {
      ...figures(took),
      'CPU s/1000': perThousand(from, to, 'api', took.length),
      'broker CPU s/1000': perThousand(from, to, 'broker', took.length),
      'peak RSS MB': memory(hooktide.pid)?.peakMb ?? null,
    }
  } finally {
    agent.destroy()
    await hooktide.stop()
  }
}

/** Resolves to how long each took, ms, ascending. Rejects when one failed. */
async function paced(forSeconds: number, send: (n: number) => Promise<unknown>): Promise<readonly number[]> {
  const count = perSecond * forSeconds
  const took: number[] = []
  const sends: Promise<unknown>[] = []
  const startMs = monoMs()
  for (let next = 0; next < count; ) {
    const due = Math.min(count, Math.floor(((monoMs() - startMs) * perSecond) / 1000) + 1)
    for (; next < due; next++) {
      const atMs = monoMs()
      sends.push(send(next).then(() => took.push(monoMs() - atMs)))
    }
    await sleep(1)
  }
  await Promise.all(sends)
  return took.sort((a, b) => a - b)
}

function post(agent: Agent, port: number, event: object): Promise<void> {
  const body = JSON.stringify(event)
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  return new Promise((resolve, reject) => {
    const options = { agent, port, host: '127.0.0.1', path: '/v1/events', method: 'POST', headers, timeout: 20_000 }
    const call = request(options, (response) => {
      response.resume()
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode === 202) resolve()
        else reject(new Error(`POST /v1/events answered ${response.statusCode}`))
      })
    })
    call.on('timeout', () => call.destroy(new Error('POST /v1/events: no answer')))
    call.on('error', reject)
    call.end(body)
  })
}

function figures(took: readonly number[]): Figures {
  return { 'p50 ms': quantile(took, 0.5), 'p99 ms': quantile(took, 0.99), 'max ms': quantile(took, 1) }
}
