import { spawn } from 'node:child_process'
import type { WorkerPlace } from '../config/share.ts'
import type { WorkerProcess } from './workers.ts'

/** How a child learns that it is one: `index/count`. Ours alone, no setting. */
export const workerVariable = '_HOOKTIDE_WORKER'

export interface WorkerCommand {
  readonly file: string
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** Whole lines of its log. */
  readonly output: (lines: Buffer) => void
}

/**
 * The same call as our own in a process of its own. It is told to stop through its channel: a terminal signals parent and
 * children alike, and a second signal would cut off what is open. When the parent is gone the channel is, and it ends too.
 */
export function startWorker(command: WorkerCommand, { index, count }: WorkerPlace): WorkerProcess {
  const child = spawn(command.file, command.args, {
    env: { ...command.env, [workerVariable]: `${index}/${count}` },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  let rest: Buffer = Buffer.alloc(0)
  child.stdout?.on('data', (chunk: Buffer) => {
    // Lines of several processes share one stream: only whole ones are passed on.
    const end = chunk.lastIndexOf(0x0a) + 1
    if (end === 0) rest = Buffer.concat([rest, chunk])
    else {
      command.output(Buffer.concat([rest, chunk.subarray(0, end)]))
      rest = chunk.subarray(end)
    }
  })
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.once('error', () => resolve({ code: 1, signal: null }))
    child.once('close', (code, signal) => {
      if (rest.length > 0) command.output(rest)
      resolve({ code, signal })
    })
  })
  return {
    pid: child.pid ?? 0,
    ended,
    tell(word) {
      if (child.connected) child.send(word, () => undefined)
    },
  }
}

/** Null: this process is no worker. */
export function workerPlace(env: NodeJS.ProcessEnv): WorkerPlace | null {
  const match = /^(\d+)\/(\d+)$/.exec(env[workerVariable] ?? '')
  return match === null ? null : { index: Number(match[1]), count: Number(match[2]) }
}
