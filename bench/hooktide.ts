import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { end, hasEnded, spawnNode } from './children.ts'
import { until } from './clock.ts'
import { monoMs } from './mono.ts'

const main = join(import.meta.dirname, '..', 'bin', 'hooktide.js')

export interface HooktideOptions {
  readonly folder: string
  readonly name: string
  /** The configuration file's content. */
  readonly config: object
  readonly env: Readonly<Record<string, string>>
  readonly roles?: string
  readonly nodeFlags?: readonly string[]
  /** Processes of it. */
  readonly workers?: number
}

/** The product as its users run it: a process of `main.ts up` with a configuration file; its log goes to a file. */
export class Hooktide {
  readonly #child: ChildProcess
  readonly #log: string
  #port = 0
  /** `monoMs` when its log said that it has started: lanes may still be on their way. */
  startedAtMs = 0

  private constructor(child: ChildProcess, log: string) {
    this.#child = child
    this.#log = log
  }

  static async start(options: HooktideOptions): Promise<Hooktide> {
    const path = join(options.folder, options.name)
    writeFileSync(`${path}.yaml`, stringify(options.config))
    const log = openSync(`${path}.log`, 'w')
    const flags = options.nodeFlags ?? []
    const { workers = 1, roles = 'router,deliverer' } = options
    const more = workers > 1 ? ['--workers', String(workers)] : []
    const args = [...flags, main, 'up', '--config', `${path}.yaml`, '--roles', roles, ...more]
    const hooktide = new Hooktide(spawnNode(args, { ...process.env, ...options.env }, log, log), `${path}.log`)
    closeSync(log)
    await until('start of Hooktide', 60_000, () => {
      if (hasEnded(hooktide.#child)) throw new Error(`Hooktide has ended:\n${hooktide.tail()}`)
      const started = hooktide.lines('service.started')
      const [line] = started
      if (line === undefined || started.length < workers) return false
      hooktide.#port = line.port as number
      hooktide.startedAtMs = monoMs()
      return true
    }).catch(async (error: unknown) => {
      await hooktide.stop()
      throw error
    })
    return hooktide
  }

  get pid(): number {
    return this.#child.pid as number
  }

  /** Lines of its log about this event. */
  lines(event: string): Record<string, unknown>[] {
    const text = readFileSync(this.#log, 'utf8')
    const wanted = text.split('\n').filter((line) => line.includes(`"event":"${event}"`) && line.endsWith('}'))
    return wanted.map((line) => JSON.parse(line) as Record<string, unknown>)
  }

  tail(): string {
    return readFileSync(this.#log, 'utf8').slice(-2000)
  }

  /** Values on its page for Prometheus, added up over the labels; of several workers the first one's. */
  async metrics(): Promise<(name: string) => number> {
    const response = await fetch(`http://127.0.0.1:${this.#port}/metrics`, { signal: AbortSignal.timeout(10_000) })
    const text = await response.text()
    return (name) => {
      let sum = 0
      for (const [, value] of text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'gm'))) sum += Number(value)
      return sum
    }
  }

  stop(ms = 20_000): Promise<void> {
    return end(this.#child, ms)
  }
}
