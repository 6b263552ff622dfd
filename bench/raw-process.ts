import { randomBytes } from 'node:crypto'
import { Pool } from 'undici'
import { createBodies, signedHeaders } from './events.ts'
import { monoMs } from './mono.ts'
import type { RawJob } from './raw.ts'

/**
 * The reference, in a process of its own: the least code that POSTs signed bodies with undici's `request`, `open` at a
 * time. No Kafka, no retries, no deadline, no state: what nothing can beat that uses the same client.
 */
const key = randomBytes(32)

process.on('disconnect', () => process.exit(0))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined)
process.on('message', (job: RawJob) => {
  run(job).then(
    () => process.send?.({ t: 'done' }),
    (error: unknown) => process.send?.({ t: 'failed', reason: String(error) }),
  )
})

async function run(job: RawJob): Promise<void> {
  const pool = new Pool(job.origin, { connections: job.open, pipelining: 1 })
  const fill = createBodies(job.bytes)
  let next = job.base
  const end = job.base + job.count
  const post = async (n: number) => {
    const body = fill(n, n % 200, monoMs())
    const headers = signedHeaders(key, `dlv_${String(n).padStart(32, '0')}`, body)
    const response = await pool.request({ path: job.path, method: 'POST', headers, body })
    await response.body.dump()
    if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`)
  }
  if (job.perSecond === undefined) {
    await Promise.all(
      Array.from({ length: job.open }, async () => {
        while (next < end) await post(next++)
      }),
    )
  } else {
    const startMs = monoMs()
    const open: Promise<void>[] = []
    while (next < end) {
      const due = Math.min(end, job.base + Math.floor(((monoMs() - startMs) * job.perSecond) / 1000))
      while (next < due) open.push(post(next++))
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await Promise.all(open)
  }
  await pool.close()
}
