import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { freePorts } from '../../src/broker/free-ports.ts'

/** moto (PyPI), of the system or where .ci/run puts it. */
const site = join(import.meta.dirname, '..', '..', '.hooktide', 'moto')
const env = { ...process.env, ...(existsSync(site) ? { PYTHONPATH: site } : {}) }
const found = spawnSync('python3', ['-c', 'import moto.server, flask'], { env, timeout: 30_000 }).status === 0

/** Why there is no S3-compatible server here; null: there is one. */
export const noS3 = found ? null : "no moto server here (pip install 'moto[server]', or see .ci/run)"
if (noS3 !== null) console.warn(`skipped: S3, ${noS3}`)

/** An S3-compatible server of its own, with a bucket. Stop it. */
export async function s3Server(bucket: string): Promise<{ readonly endpoint: string; stop(): void }> {
  const [port] = await freePorts(1)
  const endpoint = `http://127.0.0.1:${port}`
  const args = ['-m', 'moto.server', '-H', '127.0.0.1', '-p', String(port)]
  const server = spawn('python3', args, { env, stdio: 'ignore' })
  const untilMs = performance.now() + 50_000
  const made = async () => (await fetch(`${endpoint}/${bucket}`, { method: 'PUT' }).catch(() => null))?.status === 200
  while (!(await made())) {
    if (performance.now() > untilMs) {
      server.kill()
      throw new Error('the moto server does not answer')
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return { endpoint, stop: () => void server.kill() }
}
