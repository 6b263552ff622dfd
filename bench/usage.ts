import { cpuSeconds } from './machine.ts'
import { monoMs } from './mono.ts'

/** CPU seconds by process at one moment. */
export interface Reading {
  readonly atMs: number
  readonly cpu: Readonly<Record<string, number | null>>
}

export type Processes = Readonly<Record<string, number | null>>

export function read(processes: Processes): Reading {
  const cpu = Object.entries(processes).map(([name, pid]) => [name, cpuSeconds(pid)] as const)
  return { atMs: monoMs(), cpu: Object.fromEntries(cpu) }
}

/** CPU seconds per 1,000 deliveries of a process between two readings; null where it can't be seen. */
export function perThousand(from: Reading, to: Reading, name: string, deliveries: number): number | null {
  const a = from.cpu[name]
  const b = to.cpu[name]
  return a === undefined || b === undefined || a === null || b === null ? null : ((b - a) * 1000) / deliveries
}

/** How many cores a process kept busy between two readings. */
export function cores(from: Reading, to: Reading, name: string): number | null {
  const share = perThousand(from, to, name, to.atMs - from.atMs)
  return share
}
