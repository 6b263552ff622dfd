/**
 * Values of the compacted `lane-state` topic (schemas/lane-state.json, version 1). The record stands in the partition of
 * its lane, under `laneStateKey`; a tombstone means: line open, stream forgotten.
 */
export type LaneState = LineState | StreamState | CircuitMark | OffsetsState | FailingMark

/** A line that is not simply open (design, "Order through retries"). */
export interface LineState {
  readonly v: 1
  readonly kind: 'line'
  readonly line: string
  /** `blocked`: behind a head that is retried; `draining`: going on; `stopped`: its head died, an operator decides. */
  readonly state: 'blocked' | 'draining' | 'stopped'
  /** Delivery id of the head that is retried or died; null when nothing stands at the front. */
  readonly head: string | null
  /** When the head's event was produced: an order about the whole line holds for events from before it. */
  readonly headTimeMs?: number
  /** Offset in `parked` of the first record that may be undone (a lower bound). */
  readonly next: number
  /** Records parked and not done. */
  readonly count: number
  /** Offset in `deliveries` at which the line began to stand behind its head. */
  readonly since: number
  readonly sinceMs: number
  /** Unordered lines only: what is done at and above `next`, base64. */
  readonly bitmap?: string
  /** Why the line stands, one short line for people. */
  readonly reason?: string
}

/** The last delivery of a router's stream seen in this lane, as of the committed watermark (design, "Fan-out exactly once"). */
export interface StreamState {
  readonly v: 1
  readonly kind: 'stream'
  readonly stream: string
  readonly generation: number
  readonly offset: number
  readonly subscriptionId: string
}

/** A circuit that is open: whoever owns the lane next goes on from it. */
export interface CircuitMark {
  readonly v: 1
  readonly kind: 'circuit'
  /** `sub <id>` or `origin <origin>`. */
  readonly circuit: string
  /** No attempts before (epoch ms). */
  readonly untilMs: number
  /** How often in a row it opened. */
  readonly openings: number
}

/** A subscription that fails without a success in between. */
export interface FailingMark {
  readonly v: 1
  readonly kind: 'failing'
  readonly subscriptionId: string
  /** The first failure of the row. */
  readonly sinceMs: number
  /** The last one, about. */
  readonly lastMs: number
  readonly failures: number
  /** `subscription.failing` was told. */
  readonly told: boolean
}

/** What is done of a source above `base`, when that has no room in the metadata of the commit it was written with. */
export interface OffsetsState {
  readonly v: 1
  readonly kind: 'offsets'
  readonly topic: string
  /** The offset of that commit. */
  readonly base: number
  /** See `encodeRuns`. */
  readonly runs: string
}

export function laneStateKey(state: LaneState): string {
  switch (state.kind) {
    case 'line':
      return `line:${state.line}`
    case 'stream':
      return `stream:${state.stream}`
    case 'circuit':
      return `circuit:${state.circuit}`
    case 'failing':
      return `failing:${state.subscriptionId}`
    case 'offsets':
      return `offsets:${state.topic}`
    default:
      return state satisfies never
  }
}
