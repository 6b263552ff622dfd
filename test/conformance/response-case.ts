export interface Step {
  readonly read?: 'any' | 'head' | 'all'
  readonly write?: string
  readonly writeGen?: { head: string; fill?: string; lines?: string; count: number; tail: string }
  readonly writeBase64?: string
  readonly sleepMs?: number
  readonly repeat?: {
    everyMs: number
    times: number
    write?: string
    writeBase64?: string
    chunkedFill?: { byte: string; bytes: number }
  }
  readonly pump?: { bytes: number; byte?: string }
  readonly gzipZeros?: { bytes: number }
  readonly pause?: boolean
  readonly hold?: boolean
  readonly fin?: boolean
  readonly rst?: boolean
}

export interface ResponseCase {
  readonly id: string
  readonly group: string
  readonly title: string
  readonly target: {
    readonly kind: string
    readonly scheme?: string
    readonly cert?: string
    readonly alpn?: readonly string[]
    readonly answer?: unknown
    readonly error?: string
    readonly minVersion?: string
    readonly maxVersion?: string
  }
  readonly request?: { readonly count?: number; readonly gapMs?: number; readonly bodyBytes?: number }
  readonly simulate?: string
  readonly script: readonly Step[]
  readonly expected: string
  readonly anyOf?: readonly string[]
  readonly delay?: string
  readonly also?: string
  readonly level: string
}
