import { isJobStream } from '../core/job.ts'
import type { Work } from './work.ts'

/** Live first attempts; retries and lines; what replays and redrives write, which nobody waits for as for live traffic. */
export type Rank = 'first' | 'retry' | 'job'

/** A work as it waits in the executor. */
export interface Item {
  readonly flow: string
  readonly cost: number
  readonly work: Work
  readonly rank: Rank
  /** What no two open POSTs may share: the delivery, and in order its line. */
  readonly gates: readonly string[]
}

export function itemOf(work: Work): Item {
  return {
    flow: work.delivery.subscriptionId,
    cost: cost(work),
    work,
    rank: rankOf(work),
    gates: gatesOf(work),
  }
}

/** What a turn of the round robin may spend; a small body costs what the request around it does. */
export const quantumBytes = 16_384

function rankOf({ source, delivery }: Work): Rank {
  if (source !== 'deliveries') return 'retry'
  return isJobStream(delivery.origin.stream) ? 'job' : 'first'
}

function gatesOf({ delivery, line }: Work): readonly string[] {
  return line?.ordered === true ? [delivery.id, line.key] : [delivery.id]
}

function cost(work: Work): number {
  return 2_048 + work.delivery.body.length
}
