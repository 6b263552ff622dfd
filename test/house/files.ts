import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Reads the project as it stands: what the house rules are about is files, not behaviour. */
export const root = join(import.meta.dirname, '..', '..')

/** Paths of everything that is, or is about to be, in the repository. */
export const paths: readonly string[] = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\0')
  .filter((path) => path !== '' && existsSync(join(root, path)))

export function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

export const sources: readonly string[] = paths.filter((path) => path.startsWith('src/') && path.endsWith('.ts'))
