import type { Config } from '../config.ts'
import { DirectoryStore } from '../objects/directory-store.ts'
import type { Objects } from '../ports/objects.ts'

/** Where bodies stand that are too large for a record; null: nowhere. */
export function openObjects({ objects }: Config): Objects | null {
  return objects.directory === null ? null : new DirectoryStore(objects.directory)
}
