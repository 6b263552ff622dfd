/** Why an attempt got no status. `auth`: no access token could be had; `secret`: a reference can't be read; `body`: none could be made (transformation, claim check); `local`: our own fault (no memory, no descriptors, bug). */
export type FailureClass =
  | 'dns'
  | 'connect'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'protocol'
  | 'blocked'
  | 'secret'
  | 'auth'
  | 'body'
  | 'local'

/** What came back from one POST: facts only; what follows from them is `classify`'s business. */
export type Reply =
  | {
      readonly t: 'response'
      readonly status: number
      /** Raw `Retry-After` value, if there was exactly one usable. */
      readonly retryAfter: string | null
      /** `Location` of a redirect (never followed), printable ASCII, at most 512 characters. */
      readonly location?: string
      /** First bytes of the response body (≤ 4 KiB), for people; may be empty. */
      readonly excerpt: Buffer
      readonly durationMs: number
    }
  | { readonly t: 'failure'; readonly class: FailureClass; readonly detail: string; readonly durationMs: number }
  /** Our shutdown or our own fault: spends no attempt. */
  | { readonly t: 'interrupted'; readonly detail: string; readonly durationMs: number }

/** What an attempt came to: a value, never an exception. */
export type Outcome =
  | { readonly t: 'delivered'; readonly status: number }
  | {
      readonly t: 'retryable'
      readonly error: string
      readonly status: number | null
      readonly retryAfterMs: number | null
    }
  | { readonly t: 'rejected'; readonly error: string; readonly status: number | null }
  | { readonly t: 'gone'; readonly status: 410 }
  | { readonly t: 'blocked'; readonly error: string }
  | { readonly t: 'interrupted'; readonly error: string }
