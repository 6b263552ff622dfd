import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openWorld, runHooktide } from './throughput.ts'
import type { Stage } from './world.ts'

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
    readonly children?: readonly number[]
  }[]
  /** µs, of the clock that `monoMs` reads. */
  readonly startTime: number
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

export interface Cost {
  readonly name: string
  readonly ms: number
}

export interface ProfileResult {
  readonly deliveries: number
  /** CPU seconds per 1,000 with the profiler on, as a check against a run without. */
  readonly cpuPerThousand: number | null
  readonly selfByFunction: readonly Cost[]
  readonly selfByFile: readonly Cost[]
  /** With all it calls; of our own code only. */
  readonly totalByFunction: readonly Cost[]
  readonly busyMs: number
}

/** One throughput round under the CPU profiler; where the time between the first fifth and the end went. */
export async function profile(
  stage: Stage,
  settings: { concurrency: number; deliveries: number | undefined; ordered: boolean },
): Promise<ProfileResult> {
  const folder = mkdtempSync(join(stage.folder, 'profile-'))
  const world = await openWorld(stage, settings.concurrency)
  try {
    const count = settings.deliveries ?? 40_000
    let window: readonly [number, number] = [0, 0]
    const nodeFlags = ['--cpu-prof', `--cpu-prof-dir=${folder}`, '--cpu-prof-interval=500']
    const figures = await runHooktide(world, stage, {
      count,
      ordered: settings.ordered,
      nodeFlags,
      steady: (fromMs, toMs) => {
        window = [fromMs, toMs]
      },
    })
    const [file] = readdirSync(folder).filter((name) => name.endsWith('.cpuprofile'))
    if (file === undefined) throw new Error('Hooktide has left no profile')
    const read = JSON.parse(readFileSync(join(folder, file), 'utf8')) as CpuProfile
    const deliveries = Math.floor(count * 0.8)
    return { deliveries, cpuPerThousand: figures['CPU s/1000'] ?? null, ...analyse(read, window) }
  } finally {
    await world.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function analyse(profile: CpuProfile, [fromMs, toMs]: readonly [number, number]) {
  const parents = new Map<number, number>()
  const names = new Map<number, { label: string; file: string; ours: boolean; idle: boolean }>()
  for (const { id, callFrame, children } of profile.nodes) {
    for (const child of children ?? []) parents.set(child, id)
    const file = fileOf(callFrame.url)
    const name = callFrame.functionName === '' ? '(anonymous)' : callFrame.functionName
    const builtin = callFrame.url === ''
    names.set(id, {
      label: builtin ? name : `${name} ${file}:${callFrame.lineNumber + 1}`,
      file: builtin ? (name.startsWith('(') ? name : '(built-in)') : file,
      ours: file.startsWith('src/'),
      idle: name === '(idle)',
    })
  }
  const self = new Map<string, number>()
  const files = new Map<string, number>()
  const total = new Map<string, number>()
  const add = (map: Map<string, number>, name: string, ms: number) => map.set(name, (map.get(name) ?? 0) + ms)
  let busyMs = 0
  let at = profile.startTime / 1000
  for (const [i, sample] of profile.samples.entries()) {
    const ms = (profile.timeDeltas[i] ?? 0) / 1000
    at += ms
    if (at < fromMs || at > toMs) continue
    const node = names.get(sample)
    if (node === undefined || node.idle) continue
    busyMs += ms
    add(self, node.label, ms)
    add(files, node.file, ms)
    const seen = new Set<string>()
    for (let id: number | undefined = sample; id !== undefined; id = parents.get(id)) {
      const { label, ours } = names.get(id) ?? { label: '', ours: false }
      if (!ours || seen.has(label)) continue
      seen.add(label)
      add(total, label, ms)
    }
  }
  return { selfByFunction: top(self, 60), selfByFile: top(files, 30), totalByFunction: top(total, 110), busyMs }
}

function top(map: ReadonlyMap<string, number>, count: number): Cost[] {
  const sorted = [...map].sort(([, a], [, b]) => b - a).slice(0, count)
  return sorted.map(([name, ms]) => ({ name, ms }))
}

const root = join(import.meta.dirname, '..') + sep

function fileOf(url: string): string {
  if (!url.startsWith('file:')) return url
  const path = fileURLToPath(url)
  return path.startsWith(root) ? path.slice(root.length).split(sep).join('/') : path
}

export function profileText(result: ProfileResult): string {
  const perThousand = (ms: number) => ((ms * 1000) / result.deliveries).toFixed(1).padStart(7)
  const list = (costs: readonly Cost[]) =>
    costs.map(({ name, ms }) => `${perThousand(ms)}  ${((ms * 100) / result.busyMs).toFixed(1).padStart(5)} %  ${name}`)
  return [
    `### profile`,
    '',
    `Main thread busy ${perThousand(result.busyMs).trim()} ms per 1,000 deliveries; process ${result.cpuPerThousand?.toFixed(3)} CPU s per 1,000 with the profiler on. Columns: ms per 1,000 deliveries, share.`,
    '',
    'Self time by function:',
    ...list(result.selfByFunction),
    '',
    'Self time by file:',
    ...list(result.selfByFile),
    '',
    'Time of our own functions with all they call:',
    ...list(result.totalByFunction),
  ].join('\n')
}
