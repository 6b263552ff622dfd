import type { Dispatcher } from 'undici'
import type { Reply } from '../core/outcome.ts'
import { pickRetryAfter } from '../core/retry-after.ts'
import type { Target } from '../core/url-rules.ts'
import type { ClientIdentity, Clock } from '../ports.ts'
import { type Failure, failureOf } from './failure.ts'
import { fairAfter } from './fair-timer.ts'

/** Read of a response body before the connection is given up. */
const readBytes = 65_536
const maxLocationChars = 512

/** How an exchange and its connection meet; `connection.ts` has the other half. */
export interface Line {
  /** A request starts to be written: the next response is its own. */
  armed(): void
  /** Bytes of the request are still on their way while the answer is there: the connection can't be used again. */
  unsent(): boolean
  /** The exchange ended by itself; may the connection serve another one? */
  free(reusable: boolean): void
  /** Destroys the connection, whatever state it is in. */
  cut(): void
}

export interface ExchangeOptions {
  readonly clock: Clock
  readonly target: Target
  readonly headers: string[]
  readonly body: Buffer
  readonly client: ClientIdentity | null
  /** Most kept of the response's body. */
  readonly keptBytes: number
  readonly deadlineMs: number
  /** From the request's writing to the complete header block; interim responses start it anew, within the deadline. */
  readonly readTimeoutMs: number
  /** How long the body may take once the status is known. */
  readonly bodyTimeoutMs: number
  readonly settled: (exchange: Exchange, reply: Reply) => void
}

/**
 * One POST from dispatch to reply, as undici's handler. Settles exactly once and never later than its deadline, whatever
 * undici does or fails to do. Once the status is known only the excerpt can still change.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly target: Target
  readonly headers: string[]
  readonly body: Buffer
  readonly client: ClientIdentity | null
  /** Exchanges of one route may follow each other on a socket. */
  readonly route: string
  line: Line | null = null
  readonly #options: ExchangeOptions
  readonly #startMs: number
  #stopTimer: () => void
  /** When the timer is due, ms after the start. */
  #dueMs: number
  #settled = false
  #writes = 0
  #status = 0
  #retryAfter: string | null = null
  #location: string | undefined
  #kept: Buffer[] = []
  #keptBytes = 0
  #readBytes = 0
  #clean = true

  constructor(options: ExchangeOptions) {
    this.#options = options
    this.target = options.target
    this.headers = options.headers
    this.body = options.body
    this.client = options.client
    this.route = this.client === null ? this.target.origin : `${this.target.origin} ${this.client.id}`
    this.#startMs = options.clock.mono()
    this.#dueMs = options.deadlineMs
    this.#stopTimer = fairAfter(options.clock, options.deadlineMs, () => this.#deadline())
  }

  get settled(): boolean {
    return this.#settled
  }

  /** Ends it from our side: shutdown. A status that is already there stays. */
  interrupt(detail: string): void {
    if (this.#settled) return
    if (this.#status !== 0) this.#respond()
    else this.#settle({ t: 'interrupted', detail, durationMs: this.#durationMs() })
    this.line?.cut()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // undici writes a request anew only when it never went out; a second time would be a repeated POST.
    if (this.#settled || ++this.#writes > 1) controller.abort(new Error('not sent twice'))
    else if (this.#durationMs() >= this.#options.deadlineMs) {
      // The process stood still (stopped, a machine asleep) and its timers come after its sockets: whoever took over
      // meanwhile has sent it.
      this.interrupt(`own fault: not sent within ${this.#options.deadlineMs} ms`)
      controller.abort(new Error('not sent late'))
    } else {
      this.line?.armed()
      this.#limit(this.#options.readTimeoutMs)
    }
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (this.#settled) return
    if (status < 200) {
      this.#limit(this.#options.readTimeoutMs)
      return
    }
    this.#status = status
    this.#clean = !(this.line?.unsent() ?? true)
    const retryAfter = headers['retry-after']
    if (retryAfter !== undefined) this.#retryAfter = pickRetryAfter(retryAfter, this.#options.clock.now())
    if (status >= 300 && status <= 399) this.#location = printable(headers.location)
    // Most bodies are in the same chunk: the timer is only worth its price when they are not.
    queueMicrotask(() => this.#limit(this.#options.bodyTimeoutMs))
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#settled) return
    this.#readBytes += chunk.length
    const room = this.#options.keptBytes - this.#keptBytes
    if (room > 0) {
      // A copy: the chunk is a view of a much larger read buffer.
      const kept = Buffer.from(chunk.subarray(0, room))
      this.#kept.push(kept)
      this.#keptBytes += kept.length
    }
    if (this.#readBytes <= readBytes) return
    this.#respond()
    this.line?.cut()
  }

  onResponseEnd(): void {
    if (this.#settled) return
    const reusable = this.#clean && !(this.line?.unsent() ?? true)
    // In this order the connection is back before whoever awaits the reply can post again.
    this.line?.free(reusable)
    this.#respond()
  }

  onResponseError(_: unknown, error: Error): void {
    if (this.#settled) return
    if (this.#status !== 0) this.#respond()
    else this.fail(failureOf(error))
    this.line?.cut()
  }

  fail(failure: Failure): void {
    const { class: failureClass, message: detail } = failure
    const durationMs = this.#durationMs()
    if (failure.own) this.#settle({ t: 'interrupted', detail: `own fault: ${detail}`, durationMs })
    else this.#settle({ t: 'failure', class: failureClass, detail, durationMs })
  }

  #deadline(): void {
    if (this.#settled) return
    const durationMs = this.#durationMs()
    const after = `within ${Math.round(durationMs)} ms`
    if (this.#status !== 0) this.#respond()
    else if (this.line === null)
      this.#settle({ t: 'interrupted', detail: `no free socket to the origin ${after}`, durationMs })
    else this.#settle({ t: 'failure', class: 'timeout', detail: `no response ${after}`, durationMs })
    this.line?.cut()
  }

  /** At most `ms` from now, and never beyond the deadline. */
  #limit(ms: number): void {
    if (this.#settled) return
    const passedMs = this.#durationMs()
    const dueMs = Math.min(passedMs + ms, this.#options.deadlineMs)
    if (dueMs === this.#dueMs) return
    this.#dueMs = dueMs
    this.#stopTimer()
    this.#stopTimer = fairAfter(this.#options.clock, Math.max(0, dueMs - passedMs), () => this.#deadline())
  }

  #respond(): void {
    this.#settle({
      t: 'response',
      status: this.#status,
      retryAfter: this.#retryAfter,
      ...(this.#location === undefined ? {} : { location: this.#location }),
      excerpt: this.#kept.length === 1 ? (this.#kept[0] as Buffer) : Buffer.concat(this.#kept),
      durationMs: this.#durationMs(),
    })
  }

  #settle(reply: Reply): void {
    if (this.#settled) return
    this.#settled = true
    this.#stopTimer()
    this.#options.settled(this, reply)
  }

  #durationMs(): number {
    return this.#options.clock.mono() - this.#startMs
  }
}

/** Header bytes are anyone's: what goes into records and logs is printable ASCII. */
function printable(value: string | string[] | undefined): string | undefined {
  const text = Array.isArray(value) ? value[0] : value
  return text?.slice(0, maxLocationChars).replace(/[^\x20-\x7e]/g, '?')
}
