import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { dismiss, forkPart } from './children.ts'
import { within } from './clock.ts'

export interface RawJob {
  readonly origin: string
  readonly path: string
  readonly open: number
  /** Numbers of the bodies: base … base + count − 1. */
  readonly base: number
  readonly count: number
  readonly bytes: number
  /** Paced evenly; absent: as fast as it goes. */
  readonly perSecond?: number
}

/** The raw loop as a process; one job at a time, warm after the first. */
export class Raw {
  readonly #child: ChildProcess

  constructor() {
    this.#child = forkPart(join(import.meta.dirname, 'raw-process.ts'))
  }

  get pid(): number {
    return this.#child.pid as number
  }

  async run(job: RawJob): Promise<void> {
    const answer = new Promise<void>((resolve, reject) => {
      this.#child.once('message', (message: { t: string; reason?: string }) => {
        if (message.t === 'done') resolve()
        else reject(new Error(`the raw loop failed: ${message.reason}`))
      })
    })
    this.#child.send(job)
    await within('the raw loop', 110_000, answer)
  }

  close(): Promise<void> {
    return dismiss(this.#child)
  }
}
