import type { Claim } from '../core/claim.ts'

export type ObjectFound =
  | { readonly t: 'found'; readonly body: Buffer }
  /** Not there: it will not come back. */
  | { readonly t: 'missing' }
  /** There, but not what was claimed. */
  | { readonly t: 'bad'; readonly detail: string }
  /** The store can't be asked now. */
  | { readonly t: 'unavailable'; readonly detail: string }

/** Bodies too large for a record (docs/claim-check.md). */
export interface Objects {
  /** Never rejects. The body is checked against the claim's size and digest. */
  get(claim: Claim): Promise<ObjectFound>
  /** Resolves when it is stored for good. Throws when it can't be. */
  put(claim: Claim, body: Buffer): Promise<void>
  /** Removes one; false: there was none, as far as the store can tell. Throws. */
  remove(key: string): Promise<boolean>
  /** Removes the days (the first segment of keys that Hooktide makes) before this time; `dryRun`: none. Returns them, sorted. Throws. */
  removeBefore(timeMs: number, dryRun: boolean): Promise<readonly string[]>
  /** For the start. Null: it can be used for that; else why not, when that is a mistake and not an outage. */
  problem(use: 'read' | 'write'): Promise<string | null>
}
