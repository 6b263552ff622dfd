import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import type { PostEntry } from '../sim/receiver.ts'
import type { PlayKind } from './plan.ts'

interface Answers {
  readonly listening: { readonly base: string }
  readonly open: { readonly open: number }
  readonly journal: {
    readonly posts: readonly PostEntry[]
    readonly problems: readonly string[]
    /** Longest that its event loop stood still. */
    readonly stallMs: number
  }
}

/** The driver's side of the receiver's process. */
export class RemoteReceiver {
  readonly base: Promise<string>
  readonly #child: ChildProcess

  constructor(kind: PlayKind, seed: number, records: number) {
    const script = join(import.meta.dirname, 'receiver-process.ts')
    this.#child = fork(script, [kind, String(seed), String(records)], { serialization: 'advanced' })
    this.base = this.#answer('listening').then(({ base }) => base)
  }

  async open(): Promise<number> {
    return (await this.#ask('open')).open
  }

  /** Every POST so far, in the order of arrival. */
  journal(): Promise<Answers['journal']> {
    return this.#ask('journal')
  }

  stop(): void {
    this.#child.kill('SIGKILL')
  }

  #ask<T extends 'open' | 'journal'>(question: T): Promise<Answers[T]> {
    const answer = this.#answer(question)
    this.#child.send(question)
    return answer
  }

  #answer<T extends keyof Answers>(t: T): Promise<Answers[T]> {
    return new Promise((resolve, reject) => {
      const gone = () => reject(new Error('the receiver has ended'))
      const late = setTimeout(() => reject(new Error(`the receiver did not answer: ${t}`)), 60_000)
      const hear = (message: unknown) => {
        if ((message as { t: string }).t !== t) return
        clearTimeout(late)
        this.#child.off('message', hear)
        this.#child.off('exit', gone)
        resolve(message as Answers[T])
      }
      this.#child.on('message', hear)
      this.#child.once('exit', gone)
    })
  }
}
