import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { access, mkdir, open, readdir, realpath, rename, rm, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'
import { type Claim, claimProblem, isClaimKey, isDayBefore } from '../core/claim.ts'
import { messageOf } from '../core/error.ts'
import type { ObjectFound, Objects } from '../ports/objects.ts'

/** Bodies as files below one directory, which all processes that produce or deliver must share. */
export class DirectoryStore implements Objects {
  readonly #root: string

  constructor(root: string) {
    this.#root = root
  }

  async get(claim: Claim): Promise<ObjectFound> {
    if (!isClaimKey(claim.key)) return { t: 'bad', detail: 'the key is no key of this store' }
    let file: Awaited<ReturnType<typeof open>> | null = null
    try {
      const root = await realpath(this.#root)
      const path = await realpath(join(root, claim.key))
      // A link in the directory must not lead out of it.
      if (!path.startsWith(root + sep)) return { t: 'bad', detail: 'the object is not in the store' }
      file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
      const { size } = await file.stat()
      // Before it is read: its size is somebody else's choice.
      if (size !== claim.bytes) return { t: 'bad', detail: `the object has ${size} bytes, claimed were ${claim.bytes}` }
      const body = await file.readFile()
      const problem = claimProblem(claim, body)
      return problem === null ? { t: 'found', body } : { t: 'bad', detail: problem }
    } catch (error) {
      // Without its root the store is away, not the object: a mount that is missing must kill no delivery.
      if (isCode(error, 'ENOENT') && (await this.#isThere())) return { t: 'missing' }
      return { t: 'unavailable', detail: messageOf(error) }
    } finally {
      await file?.close()
    }
  }

  async put(claim: Claim, body: Buffer): Promise<void> {
    const path = join(this.#root, claim.key)
    await mkdir(dirname(path), { recursive: true })
    const draft = `${path}.${randomBytes(6).toString('hex')}`
    const file = await open(draft, 'wx')
    try {
      await file.writeFile(body)
      // The record that points to it is acknowledged by Kafka: then this must be there too.
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  }

  async remove(key: string): Promise<boolean> {
    if (!isClaimKey(key)) return false
    try {
      const root = await realpath(this.#root)
      const folder = await realpath(dirname(join(root, key)))
      // Neither the object nor a folder on the way may lead out of the directory.
      if (folder !== root && !folder.startsWith(root + sep)) return false
      await unlink(join(folder, basename(key)))
      return true
    } catch (error) {
      if (isCode(error, 'ENOENT') && (await this.#isThere())) return false
      throw error
    }
  }

  async removeBefore(timeMs: number, dryRun: boolean): Promise<readonly string[]> {
    const days = (await readdir(this.#root)).filter((name) => isDayBefore(name, timeMs)).sort()
    if (!dryRun) for (const day of days) await rm(join(this.#root, day), { recursive: true })
    return days
  }

  /** Nothing is made here that is not there: it may be a mount that is missing. */
  async problem(use: 'read' | 'write'): Promise<string | null> {
    const found = await stat(this.#root).catch(() => null)
    if (found === null) return 'does not exist'
    if (!found.isDirectory()) return 'is no directory'
    try {
      await access(this.#root, constants.R_OK | constants.X_OK)
    } catch {
      return 'can not be read'
    }
    if (use === 'read') return null
    const path = join(this.#root, `.check-${randomBytes(6).toString('hex')}`)
    try {
      await (await open(path, 'wx')).close()
      await unlink(path)
      return null
    } catch (error) {
      return `can not be written to: ${messageOf(error)}`
    }
  }

  async #isThere(): Promise<boolean> {
    return stat(this.#root).then(
      (found) => found.isDirectory(),
      () => false,
    )
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
