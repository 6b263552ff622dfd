import { join } from 'node:path'
import type { FaultEntry } from '../sim/memory-broker.ts'
import { pick, type Random } from '../sim/random.ts'
import type { Strike } from './plan.ts'
import { wallMs } from './receiver.ts'
import { pause, until } from './wait.ts'
import { Worker } from './worker.ts'

/** A fault as it happened, with the incarnation it struck. */
export interface Struck extends FaultEntry {
  readonly incarnation: number | null
}

export interface Outage {
  kill(): Promise<void>
  restart(): Promise<void>
}

const mostWorkers = 4

/** The workers of a round and what is done to them. */
export class Fleet {
  readonly all: Worker[] = []
  readonly faults: Struck[] = []
  readonly problems: string[] = []
  changes = 0
  readonly #make: (name: string, incarnation: number) => Worker
  readonly #broker: Outage | null
  readonly #random: Random
  readonly #slots = new Map<string, Worker>()
  #ended = false

  constructor(options: {
    folder: string
    prefix: string
    brokers: string
    secret: string
    broker: Outage | null
    random: Random
  }) {
    this.#make = (name, incarnation) => new Worker({ ...options, folder: join(options.folder), name, incarnation })
    this.#broker = options.broker
    this.#random = options.random
  }

  /** The newest of each name that lives. */
  get living(): Worker[] {
    return [...this.#slots.values()].filter(({ exit, asked }) => exit === null && asked === 'no')
  }

  launch(name: string): Worker {
    const worker = this.#make(name, (this.#slots.get(name)?.incarnation ?? 0) + 1)
    this.all.push(worker)
    this.#slots.set(name, worker)
    void worker.ended.then(() => {
      // A process that is told to end before it has begun has no handler yet.
      const unborn = worker.asked === 'term' && worker.exit === 'SIGTERM' && worker.lines().length === 0
      const fine =
        unborn ||
        (worker.asked === 'kill' && worker.exit === 'SIGKILL') ||
        (worker.asked === 'term' && worker.exit === 'exit 0')
      if (!fine) this.problems.push(`worker: ${worker.id} ended with ${worker.exit}, asked to: ${worker.asked}`)
    })
    return worker
  }

  launchMore(): Worker {
    let n = 0
    while (this.#slots.has(`w${n}`) && this.#slots.get(`w${n}`)?.exit === null) n++
    return this.launch(`w${n}`)
  }

  /** Resolves to whether all that live have started. */
  started(withinMs: number): Promise<boolean> {
    return until(() => this.living.every((worker) => worker.has('service.started')), withinMs)
  }

  async strike(strike: Strike): Promise<void> {
    if (this.#ended) return
    switch (strike.t) {
      case 'kill':
      case 'term': {
        const worker = this.#slots.get(`w${strike.worker}`)
        if (worker === undefined || worker.exit !== null || worker.asked !== 'no') return
        if (strike.t === 'kill') this.#note('crash', worker, 0)
        this.changes++
        worker.signal(strike.t === 'kill' ? 'SIGKILL' : 'SIGTERM')
        await pause(strike.downMs)
        this.launch(worker.name)
        return
      }
      case 'stop': {
        const worker = this.#slots.get(`w${strike.worker}`)
        if (worker === undefined || worker.exit !== null || worker.asked !== 'no') return
        this.#note('stall', worker, strike.forMs)
        this.changes++
        worker.signal('SIGSTOP')
        await pause(strike.forMs)
        worker.signal('SIGCONT')
        return
      }
      case 'broker': {
        if (this.#broker === null) throw new Error('this round has no broker of its own to kill')
        const atMs = wallMs()
        await this.#broker.kill()
        await pause(strike.downMs)
        await this.#broker.restart()
        this.changes++
        this.faults.push({ kind: 'leader', process: null, incarnation: null, atMs, untilMs: wallMs() })
        return
      }
      case 'join':
      case 'leave': {
        const { living } = this
        const joins = living.length <= 1 || (strike.t === 'join' && living.length < mostWorkers)
        this.changes++
        if (joins) this.launchMore()
        else pick(this.#random, living).signal('SIGTERM')
        return
      }
      default:
        strike satisfies never
    }
  }

  /** SIGTERM to all, in good order. */
  async stop(): Promise<void> {
    this.#ended = true
    for (const worker of this.living) worker.signal('SIGTERM')
    const gone = () => this.all.every(({ exit }) => exit !== null)
    if (await until(gone, 40_000)) return
    for (const worker of this.all) {
      if (worker.exit !== null) continue
      this.problems.push(`worker: ${worker.id} did not end within 40 s of SIGTERM`)
      worker.signal('SIGKILL')
    }
    await until(gone, 5_000)
  }

  /** Nothing survives a round, whatever happens in it. */
  destroy(): void {
    this.#ended = true
    for (const worker of this.all) if (worker.exit === null) worker.signal('SIGKILL')
  }

  #note(kind: string, { name, incarnation }: Worker, forMs: number): void {
    const atMs = wallMs()
    this.faults.push({ kind, process: name, incarnation, atMs, untilMs: atMs + forMs })
  }
}
