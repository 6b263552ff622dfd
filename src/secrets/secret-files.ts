import { closeSync, constants, fstatSync, openSync, readSync, realpathSync, statSync } from 'node:fs'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { messageOf } from '../core/error.ts'
import { fail, ok, type Result } from '../core/result.ts'
import { Secret } from '../core/secret.ts'
import { trimFileNewline } from '../core/signature.ts'
import type { Clock } from '../ports.ts'

interface Entry {
  checkedMono: number
  /** Which file, in which state; '' after a failure. */
  stamp: string
  result: Result<Secret>
}

const recheckMs = 1000
const maxBytes = 65_536

/**
 * Texts of files in one directory (mounted secrets). Looked at again at most every second and read again when the file
 * changed, so a rotated secret signs within a second. A file that went away gives a reason, not its old text: taking a
 * secret away must end its use. Reading is synchronous: mounted secrets are small files in memory.
 */
export class SecretFiles {
  readonly #directory: string
  readonly #clock: Clock
  readonly #entries = new Map<string, Entry>()

  constructor(directory: string, clock: Clock) {
    this.#directory = resolve(directory)
    this.#clock = clock
  }

  /** `path` is relative to the directory, or absolute and inside it. The same `Secret` object until the text changes. */
  read(path: string): Result<Secret> {
    const now = this.#clock.mono()
    const old = this.#entries.get(path)
    if (old !== undefined && now - old.checkedMono < recheckMs) return old.result
    const entry = this.#look(path, now, old)
    this.#entries.set(path, entry)
    return entry.result
  }

  #look(path: string, checkedMono: number, old: Entry | undefined): Entry {
    const refused = (reason: string): Entry => ({ checkedMono, stamp: '', result: fail(reason) })
    const wanted = resolve(this.#directory, path)
    if (!isInside(this.#directory, wanted) || path.includes('\0'))
      return refused(`file ${path} is not inside secrets.directory; put it there`)
    try {
      // Kubernetes mounts are links within the directory: follow them, then ask where they led.
      const real = realpathSync(wanted)
      if (!isInside(realpathSync(this.#directory), real))
        return refused(`file ${path} is a link out of secrets.directory; put the file itself there`)
      const { dev, ino, size, mtimeNs } = statSync(real, { bigint: true })
      const stamp = `${real} ${dev} ${ino} ${size} ${mtimeNs}`
      if (old?.stamp === stamp) return { ...old, checkedMono }
      const text = readRegular(real)
      if (text === null) return refused(`file ${path} is not a regular file of at most ${maxBytes} bytes`)
      return { checkedMono, stamp, result: ok(new Secret(trimFileNewline(text))) }
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? messageOf(error)
      return refused(
        `file ${path} can not be read (${code}); check that it is in secrets.directory and readable to this user`,
      )
    }
  }
}

/** No link is followed any more (it may have been swapped since it was resolved), and a FIFO does not block us. */
function readRegular(real: string): string | null {
  const fd = openSync(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    if (!fstatSync(fd).isFile()) return null
    const bytes = Buffer.alloc(maxBytes + 1)
    let length = 0
    for (let n = -1; n !== 0 && length < bytes.length; length += n)
      n = readSync(fd, bytes, length, bytes.length - length, null)
    const text = length > maxBytes ? null : bytes.toString('utf8', 0, length)
    bytes.fill(0)
    return text
  } finally {
    closeSync(fd)
  }
}

function isInside(directory: string, path: string): boolean {
  const way = relative(directory, path)
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}
