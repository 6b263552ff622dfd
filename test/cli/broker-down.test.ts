import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..', '..')

/** Port 1 is nobody's. The client tries for half a minute before it gives up. */
const env = { PATH: process.env.PATH ?? '', KAFKA_BROKERS: '127.0.0.1:1' }

test('a command without a broker ends with an error that says so, not in silence', { timeout: 90_000 }, async () => {
  const main = join(root, 'src', 'main.ts')
  const { code, out, err } = await new Promise<{ code: unknown; out: string; err: string }>((resolve) => {
    execFile(process.execPath, [main, 'topics', 'plan'], { env, timeout: 80_000 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : error.code, out, err })
    })
  })
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err).toContain('ECONNREFUSED 127.0.0.1:1')
})
