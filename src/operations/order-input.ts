/** Who gives an order and why. `by` null: the caller. */
export interface OrderInput {
  readonly by?: string | undefined
  readonly reason?: string | undefined
  /** Ends by itself after it. */
  readonly forMs?: number | undefined
}
