import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/**
 * kafkajs as it is published, beside the patched one of `src/kafka/load.ts`: what a test shows to fail on it is the
 * reason for a patch. It is a copy on disk, because kafkajs requires modules on first use and would find patched ones
 * in the shared cache. Returns a `require` for its modules; `get('')` is the library itself.
 */
export function stockKafkajs(): <T = unknown>(module: string) => T {
  const from = dirname(createRequire(import.meta.url).resolve('kafkajs/package.json'))
  const dir = mkdtempSync(join(tmpdir(), 'stock-kafkajs-'))
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }))
  cpSync(from, dir, { recursive: true })
  const require = createRequire(join(dir, 'package.json'))
  return <T>(module: string): T => require(module === '' ? './index.js' : `./src/${module}`) as T
}
