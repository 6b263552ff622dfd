import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface SeenSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly status?: { readonly code: number; readonly message: string }
  readonly fields: Readonly<Record<string, string | number | boolean>>
}

interface Body {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] }
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<SeenSpan, 'fields'> & { attributes: Attribute[] })[]
    }[]
  }[]
}

interface Attribute {
  readonly key: string
  readonly value: { stringValue?: string; intValue?: string; boolValue?: boolean; doubleValue?: number }
}

/** A trace collector that takes OTLP/HTTP JSON as a test says. */
export class Collector {
  readonly spans: SeenSpan[] = []
  readonly requests: {
    readonly authorization: string | undefined
    readonly service: unknown
    readonly status: number
  }[] = []
  /** What the next requests are answered with; then 200. */
  readonly answers: number[] = []
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { resourceSpans } = JSON.parse(Buffer.concat(chunks).toString()) as Body
      const status = this.answers.shift() ?? 200
      const [first] = resourceSpans
      const service = fieldsOf(first?.resource.attributes ?? [])['service.name']
      this.requests.push({ authorization: request.headers.authorization, service, status })
      if (status === 200)
        for (const { attributes, ...span } of first?.scopeSpans[0]?.spans ?? [])
          this.spans.push({ ...span, fields: fieldsOf(attributes) })
      response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
    })
  })

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return this
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1/traces`
  }

  stop(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }
}

function fieldsOf(attributes: readonly Attribute[]): Record<string, string | number | boolean> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue, boolValue, doubleValue } }) => [
      key,
      stringValue ?? boolValue ?? doubleValue ?? Number(intValue),
    ]),
  )
}
