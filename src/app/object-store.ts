import type { Config } from '../config.ts'
import { HooktideError } from '../core/error.ts'
import type { Secret } from '../core/secret.ts'
import { DirectoryStore } from '../objects/directory-store.ts'
import { S3Store } from '../objects/s3-store.ts'
import type { Objects } from '../ports/objects.ts'
import type { Clock } from '../ports.ts'
import { References } from '../secrets/references.ts'

/** Where bodies stand that are too large for a record; null: nowhere. Throws `secret.unavailable`. */
export function openObjects(
  { objects, secrets }: Config,
  env: Readonly<Record<string, string | undefined>>,
  clock: Clock,
): Objects | null {
  const { directory, fetchTimeoutMs: timeoutMs, s3 } = objects
  if (directory !== null) return new DirectoryStore(directory)
  if (s3.bucket === null) return null
  const references = new References({ env, directory: secrets.directory, clock })
  const text = (field: string, ref: string | null): Secret => {
    const found = ref === null ? null : references.text(ref)
    if (found?.ok === true) return found.value
    throw new HooktideError(
      'secret.unavailable',
      `objects.s3.${field}: ${found === null ? 'is not set' : found.reason}`,
      {
        remedy: 'Set the reference, or objects.s3.bucket to null.',
      },
    )
  }
  return new S3Store({
    bucket: s3.bucket,
    prefix: s3.prefix,
    region: s3.region,
    endpoint: s3.endpoint,
    accessKeyId: text('accessKeyIdRef', s3.accessKeyIdRef),
    secretAccessKey: text('secretAccessKeyRef', s3.secretAccessKeyRef),
    timeoutMs,
    clock,
  })
}

/** For the start. Rejects `config.invalid` when bodies could not be had (or put) there, by a mistake that does not heal. */
export async function checkObjects({ objects }: Config, store: Objects, use: 'read' | 'write'): Promise<void> {
  const problem = await store.problem(use)
  if (problem === null) return
  throw new HooktideError('config.invalid', `objects.directory (${objects.directory}): ${problem}`, {
    remedy: 'Make or mount it for the user of this process, or set objects.directory to null.',
  })
}
