import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { atOurEnd } from '../../src/broker/processes.ts'
import { overridesOf, secretName } from './setting.ts'

const root = join(import.meta.dirname, '..', '..')
const main = join(root, 'bin', 'hooktide.js')
const compiled = join(root, '.hooktide', 'compiled')

export interface Line {
  readonly time: number
  readonly event: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** One `hooktide up`: a real process, its configuration and its log in the round's folder. */
export class Worker {
  readonly name: string
  readonly incarnation: number
  readonly log: string
  readonly #child: ChildProcess
  #exit: string | null = null
  readonly #ended: Promise<void>
  /** What this driver did to it: an end that is not of our making is a finding. */
  asked: 'no' | 'kill' | 'term' = 'no'

  constructor(options: {
    name: string
    incarnation: number
    folder: string
    prefix: string
    brokers: string
    secret: string
  }) {
    this.name = options.name
    this.incarnation = options.incarnation
    const id = `${options.name}.${options.incarnation}`
    this.log = join(options.folder, `${id}.log`)
    const config = join(options.folder, `${id}.yaml`)
    writeFileSync(config, JSON.stringify(overridesOf(options.prefix, options.brokers, `chaos-${id}`), null, 1))
    const log = openSync(this.log, 'w')
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(HOOKTIDE|KAFKA|VITEST|NODE_ENV)/.test(name)),
    )
    this.#child = spawn(process.execPath, [main, 'up', '--config', config], {
      stdio: ['ignore', log, log],
      env: { ...env, NODE_COMPILE_CACHE: compiled, [secretName]: options.secret },
    })
    closeSync(log)
    // It must not outlive this driver, however that ends.
    const callOff = atOurEnd(process.env, 'kill -KILL "$0"', [String(this.#child.pid)])
    this.#ended = new Promise((resolve) => {
      const end = (exit: string) => {
        this.#exit ??= exit
        callOff()
        resolve()
      }
      this.#child.once('error', (error) => end(error.message))
      this.#child.once('exit', (code, signal) => end(signal ?? `exit ${code}`))
    })
  }

  get id(): string {
    return `${this.name}.${this.incarnation}`
  }

  /** How it ended; null: it lives. */
  get exit(): string | null {
    return this.#exit
  }

  get ended(): Promise<void> {
    return this.#ended
  }

  signal(name: NodeJS.Signals): void {
    if (name === 'SIGKILL') this.asked = 'kill'
    if (name === 'SIGTERM' && this.asked === 'no') this.asked = 'term'
    this.#child.kill(name)
  }

  /** Its log so far; what is not JSON is kept as `text`. */
  lines(): Line[] {
    return readFileSync(this.log, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        try {
          const fields = JSON.parse(line) as Record<string, unknown>
          return { time: Date.parse(String(fields.time)), event: String(fields.event), fields }
        } catch {
          return { time: Number.NaN, event: 'text', fields: { text: line } }
        }
      })
  }

  has(event: string): boolean {
    return readFileSync(this.log, 'utf8').includes(`"${event}"`)
  }

  /** Where /metrics listens; null: it has not started yet. */
  port(): number | null {
    const started = this.lines().find(({ event }) => event === 'service.started')
    return started === undefined ? null : Number(started.fields.port)
  }
}
