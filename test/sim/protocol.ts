/** What a broker answers when it does not do what it was asked. */
export type ProtocolCode =
  | 'unavailable'
  | 'fenced'
  | 'invalid-transaction'
  | 'rebalance-in-progress'
  | 'unknown-member'
  | 'illegal-generation'
  | 'too-large'
  | 'metadata-too-large'
  | 'out-of-range'
  | 'unknown-topic'
  | 'network'

export class ProtocolError extends Error {
  readonly code: ProtocolCode

  constructor(code: ProtocolCode, message: string = code) {
    super(message)
    this.code = code
  }
}

export function codeOf(error: unknown): ProtocolCode | null {
  return error instanceof ProtocolError ? error.code : null
}

export function keyOf(at: { readonly topic: string; readonly partition: number }): string {
  return `${at.topic}/${at.partition}`
}
