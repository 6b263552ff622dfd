import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { messageOf } from '../core/error.ts'
import type { Clock, Fields, Observer } from '../ports.ts'
import { type EndedSpan, encodeSpans } from './otlp.ts'

export interface SpanExporterOptions {
  /** Where a collector takes traces by OTLP/HTTP, e.g. http://127.0.0.1:4318/v1/traces. */
  readonly url: string
  /** Value of `authorization`; null: none. */
  readonly authorization: string | null
  readonly resource: Fields
  readonly version: string
  readonly clock: Clock
  readonly observer: Observer
}

/**
 * Sends ended spans in batches. A collector that is away costs spans, never deliveries: what does not fit is dropped and
 * counted, and it is asked again with growing pauses.
 */
export class SpanExporter {
  readonly #options: SpanExporterOptions
  #queue: EndedSpan[] = []
  #sending: Promise<void> | null = null
  #cancel: (() => void) | null = null
  #failures = 0
  #closed = false

  constructor(options: SpanExporterOptions) {
    this.#options = options
  }

  add(span: EndedSpan): void {
    if (this.#closed || this.#queue.length >= maxQueued) {
      this.#options.observer.count('spans_dropped')
      return
    }
    this.#queue.push(span)
    if (this.#queue.length >= maxBatch && this.#failures === 0) this.#send()
    else this.#arm(flushMs)
  }

  /** Sends what is left, for `closeMs` at most. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#cancel?.()
    const { clock, observer } = this.#options
    const untilMs = clock.mono() + closeMs
    while ((this.#sending !== null || this.#queue.length > 0) && clock.mono() < untilMs) {
      if (this.#sending === null && this.#failures > 0) break
      this.#send()
      await this.#sending
    }
    observer.count('spans_dropped', this.#queue.length)
    this.#queue = []
  }

  #arm(ms: number): void {
    if (this.#cancel !== null || this.#sending !== null) return
    this.#cancel = this.#options.clock.after(ms, () => {
      this.#cancel = null
      this.#send()
    })
  }

  #send(): void {
    if (this.#sending !== null || this.#queue.length === 0) return
    this.#cancel?.()
    this.#cancel = null
    const batch = this.#queue.splice(0, maxBatch)
    this.#sending = this.#post(batch).finally(() => {
      this.#sending = null
      if (this.#closed || this.#queue.length === 0) return
      this.#arm(this.#failures > 0 ? Math.min(mostPauseMs, 1_000 * 2 ** this.#failures) : 0)
    })
  }

  async #post(batch: EndedSpan[]): Promise<void> {
    const { observer, resource, version } = this.#options
    const body = Buffer.from(encodeSpans(batch, resource, version))
    let why: string
    let again = true
    try {
      const status = await this.#exchange(body)
      if (status >= 200 && status < 300) {
        observer.count('spans_exported', batch.length)
        if (this.#failures > 0) observer.log('info', 'traces.recovered', { failures: this.#failures })
        this.#failures = 0
        return
      }
      why = `the collector answered ${status}`
      // OTLP/HTTP: these alone may be sent again.
      again = status === 429 || (status >= 502 && status <= 504)
    } catch (error) {
      why = messageOf(error)
    }
    if (this.#failures++ === 0) observer.log('warn', 'traces.export_failed', { error: why, spans: batch.length })
    const room = again ? Math.max(0, maxQueued - this.#queue.length) : 0
    observer.count('spans_dropped', batch.length - Math.min(room, batch.length))
    this.#queue.unshift(...batch.slice(0, room))
  }

  #exchange(body: Buffer): Promise<number> {
    const { url, authorization, clock } = this.#options
    return new Promise((resolve, reject) => {
      const headers = {
        'content-type': 'application/json',
        'content-length': body.length,
        ...(authorization === null ? {} : { authorization }),
      }
      const answered = (response: IncomingMessage) => {
        response.resume()
        response.on('end', () => {
          cancel()
          resolve(response.statusCode ?? 0)
        })
        response.on('error', reject)
      }
      const begin = url.startsWith('https:') ? httpsRequest : httpRequest
      const request = begin(url, { method: 'POST', headers }, answered)
      const cancel = clock.after(answerMs, () => request.destroy(new Error(`no answer within ${answerMs} ms`)))
      request.on('error', (error) => {
        cancel()
        reject(error)
      })
      request.end(body)
    })
  }
}

const maxQueued = 4_096
const maxBatch = 512
const flushMs = 1_000
const answerMs = 5_000
const closeMs = 2_000
const mostPauseMs = 30_000
