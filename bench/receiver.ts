import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { dismiss, forkPart } from './children.ts'
import { within } from './clock.ts'
import type { Report } from './tally.ts'

type Message =
  | { t: 'port'; port: number }
  | { t: 'ready' }
  | { t: 'report'; report: Report }
  | { t: 'counts'; posts: number; distinct: number }
  | { t: 'mark'; mark: number; atMs: number }

/** The endpoint as a process, and what it has seen. */
export class Receiver {
  readonly #child: ChildProcess
  #port = 0
  #onMark: (mark: number, atMs: number) => void = () => undefined
  #reached = new Map<number, { promise: Promise<number>; resolve(atMs: number): void }>()

  private constructor(child: ChildProcess) {
    this.#child = child
    child.on('message', (message: Message) => {
      if (message.t !== 'mark') return
      this.#onMark(message.mark, message.atMs)
      this.#at(message.mark).resolve(message.atMs)
    })
  }

  static async start(): Promise<Receiver> {
    const receiver = new Receiver(forkPart(join(import.meta.dirname, 'receiver-process.ts')))
    receiver.#port = (await receiver.#next('port')).port
    return receiver
  }

  get pid(): number {
    return this.#child.pid as number
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Forgets everything and counts base … base + count − 1. `onMark`: 0 the first, 0.2 a fifth, 1 all have arrived. */
  async expect(base: number, count: number, onMark: (mark: number, atMs: number) => void = () => undefined) {
    this.#reached = new Map()
    this.#onMark = onMark
    const ready = this.#next('ready')
    this.#child.send({ t: 'expect', base, count })
    await ready
  }

  /** When the mark was reached, `monoMs`. */
  async reached(mark: number, withinMs: number): Promise<number> {
    return within(`${mark * 100} % of the deliveries`, withinMs, this.#at(mark).promise)
  }

  async report(): Promise<Report> {
    const answer = this.#next('report')
    this.#child.send({ t: 'report' })
    return (await answer).report
  }

  /** POSTs so far, and of how many numbers; cheaper than a report. */
  async counts(): Promise<{ readonly posts: number; readonly distinct: number }> {
    const answer = this.#next('counts')
    this.#child.send({ t: 'counts' })
    return await answer
  }

  close(): Promise<void> {
    return dismiss(this.#child)
  }

  #at(mark: number) {
    let entry = this.#reached.get(mark)
    if (entry === undefined) {
      entry = Promise.withResolvers<number>()
      this.#reached.set(mark, entry)
    }
    return entry
  }

  #next<T extends Message['t']>(t: T): Promise<Extract<Message, { t: T }>> {
    const answer = new Promise<Extract<Message, { t: T }>>((resolve) => {
      const listener = (message: Message) => {
        if (message.t !== t) return
        this.#child.off('message', listener)
        resolve(message as Extract<Message, { t: T }>)
      }
      this.#child.on('message', listener)
    })
    return within(`the receiver's ${t}`, 10_000, answer)
  }
}
