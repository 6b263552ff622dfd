import { readFileSync } from 'node:fs'
import { arch, availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os'

/** What the figures were measured on. */
export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGb: number
  readonly system: string
  readonly node: string
}

export function machine(): Machine {
  return {
    cpu: (cpus()[0]?.model ?? 'unknown').trim(),
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 1024 ** 3),
    system: `${type()} ${release()} ${arch()}`,
    node: process.versions.node,
  }
}

/** One-minute load average: above the number of cores, others work on this machine and absolute figures mean little. */
export function load(): number {
  return loadavg()[0] as number
}

/**
 * CPU seconds a process and its living children have used, user and system; null where it can't be seen (no /proc, a broker
 * elsewhere).
 */
export function cpuSeconds(pid: number | null): number | null {
  const own = ownCpuSeconds(pid)
  if (own === null || pid === null) return own
  return childrenOf(pid).reduce((sum, child) => sum + (cpuSeconds(child) ?? 0), own)
}

function ownCpuSeconds(pid: number | null): number | null {
  const text = pid === null ? null : readProc(pid, 'stat')
  if (text === null) return null
  // The name in parentheses may hold spaces; user and system time are fields 14 and 15.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

export interface Memory {
  /** Highest resident set since the start, MB of 10^6 bytes; of several processes the sum. */
  readonly peakMb: number
  readonly nowMb: number
}

export function memory(pid: number): Memory | null {
  const own = ownMemory(pid)
  if (own === null) return null
  return childrenOf(pid).reduce((sum, child) => {
    const part = memory(child)
    return part === null ? sum : { peakMb: sum.peakMb + part.peakMb, nowMb: sum.nowMb + part.nowMb }
  }, own)
}

function childrenOf(pid: number): number[] {
  const text = readProc(pid, `task/${pid}/children`) ?? ''
  return text.split(' ').filter(Boolean).map(Number)
}

function ownMemory(pid: number): Memory | null {
  const text = readProc(pid, 'status')
  if (text === null) return null
  const of = (name: string) =>
    (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? Number.NaN) * 1024) / 1e6
  return { peakMb: of('VmHWM'), nowMb: of('VmRSS') }
}

function readProc(pid: number, name: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8')
  } catch {
    return null
  }
}

/** USER_HZ: 100 on every Linux that Node runs on. */
const ticksPerSecond = 100
