import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { HooktideError, messageOf } from '../core/error.ts'
import type { CliDeps } from './deps.ts'

const maxBytes = 64 * 1024 * 1024

/** Bytes of a file, or of stdin for `-`, as they come. */
export async function* readChunks(deps: Pick<CliDeps, 'stdin'>, file: string): AsyncGenerator<Buffer> {
  if (file === '-') {
    for await (const chunk of deps.stdin) yield Buffer.from(chunk as Buffer)
    return
  }
  try {
    if ((await stat(file)).isDirectory()) throw new Error('it is a directory')
    for await (const chunk of createReadStream(file)) yield chunk as Buffer
  } catch (cause) {
    throw new HooktideError('usage', `${file} can not be read: ${messageOf(cause)}`, {
      cause,
      remedy: 'Give the path of a readable file, or - for stdin.',
    })
  }
}

export async function readBytes(deps: Pick<CliDeps, 'stdin'>, file: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of readChunks(deps, file)) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new HooktideError('usage', `${file} is larger than ${maxBytes / 1024 / 1024} MiB`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

export async function readText(deps: Pick<CliDeps, 'stdin'>, file: string): Promise<string> {
  return (await readBytes(deps, file)).toString('utf8')
}

/** Lines without their ends, empty ones left out, with their 1-based numbers. */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<{ readonly number: number; readonly line: Buffer }> {
  let rest: Buffer[] = []
  let number = 0
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      rest.push(chunk.subarray(start, end))
      const line = trimmed(Buffer.concat(rest))
      rest = []
      start = end + 1
      number++
      if (line.length > 0) yield { number, line }
    }
    rest.push(chunk.subarray(start))
  }
  const line = trimmed(Buffer.concat(rest))
  if (line.length > 0) yield { number: number + 1, line }
}

function trimmed(line: Buffer): Buffer {
  return line.at(-1) === 13 ? line.subarray(0, -1) : line
}
