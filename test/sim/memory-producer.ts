import { HooktideError } from '../../src/core/error.ts'
import type { OutRecord } from '../../src/core/record.ts'
import type { Appended, Producer } from '../../src/ports.ts'
import type { Link } from './link.ts'
import { byPartition, type MemoryCore, outBytes, portError } from './memory-core.ts'
import { ProtocolError } from './protocol.ts'
import { between } from './random.ts'

/** The plain producer: one request in flight; a failed one takes everything queued behind it along, as the port says. */
export class MemoryProducer implements Producer {
  readonly #core: MemoryCore
  readonly #link: Link
  #queue: { records: readonly OutRecord[]; resolve(appended: Appended[]): void; reject(error: Error): void }[] = []
  #busy = false
  #closed = false
  #idle: (() => void)[] = []

  constructor(core: MemoryCore, link: Link) {
    this.#core = core
    this.#link = link
  }

  send(records: readonly OutRecord[]): Promise<readonly Appended[]> {
    if (this.#closed) return Promise.reject(new HooktideError('producer.closed', 'send on a closed producer'))
    if (records.length === 0) return Promise.resolve([])
    return new Promise((resolve, reject) => {
      this.#queue.push({ records, resolve, reject })
      if (!this.#busy) void this.#work()
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    if (this.#busy) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  async #work(): Promise<void> {
    this.#busy = true
    for (let job = this.#queue.shift(); job !== undefined; job = this.#queue.shift()) {
      try {
        job.resolve(await this.#request(job.records))
      } catch (error) {
        const failed = portError(error, 'producer.failed')
        job.reject(failed)
        if (failed.code === 'record.too-large') continue
        for (const queued of this.#queue.splice(0)) queued.reject(portError(error, 'producer.failed'))
      }
    }
    this.#busy = false
    for (const go of this.#idle.splice(0)) go()
  }

  async #request(records: readonly OutRecord[]): Promise<Appended[]> {
    const { dice } = this.#core
    const id = this.#link.process.id
    const parts = byPartition(records)
    const stored = dice.hit('sendStored', id)
    const late = dice.hit('sendLate', id)
    const partly = dice.hit('sendPartly', id)
    return this.#link.call(() => {
      for (const record of records) {
        if (outBytes(record) > this.#core.settings.maxMessageBytes) throw new ProtocolError('too-large')
      }
      if (late) {
        const landsMs = between(dice.stream('late'), 1, 2 * this.#core.settings.requestTimeoutMs)
        this.#core.clock.after(landsMs, () => {
          for (const part of parts) this.#appendLate(part)
        })
        throw new ProtocolError('network', 'no answer; the request is still on its way')
      }
      if (partly) {
        const random = dice.stream('partly')
        const whole = between(random, 0, parts.length - 1)
        for (const part of parts.slice(0, whole)) this.#append(part)
        const cut = parts[whole] as OutRecord[]
        const head = cut.slice(0, between(random, 0, cut.length - 1))
        if (head.length > 0) this.#append(head)
        throw new ProtocolError('network', 'a part of the request failed')
      }
      let failure: unknown = null
      const appended: Appended[] = []
      for (const part of parts) {
        // Each partition answers for itself: a leader that is away fails its part only.
        try {
          appended.push(this.#append(part))
        } catch (error) {
          failure ??= error
        }
      }
      if (failure !== null) throw failure
      if (stored) throw new ProtocolError('network', 'the answer was lost')
      return appended
    })
  }

  #appendLate(part: readonly OutRecord[]): void {
    try {
      this.#append(part)
    } catch {
      // No leader when it arrived: lost, and nobody waits for it any more.
    }
  }

  #append(part: readonly OutRecord[]): Appended {
    const first = part[0] as OutRecord
    const log = this.#core.log(first.topic, first.partition)
    this.#core.requireLeader(log)
    if (this.#core.dice.hit('gap', this.#link.process.id)) {
      log.gap(between(this.#core.dice.stream('gap size'), 1, 3), this.#core.clock.mono())
    }
    const { timestampMs, appendTimeMs } = this.#core.stamp(first.topic, this.#link.process)
    const firstOffset = log.append(part, null, timestampMs, this.#core.clock.mono())
    return { topic: first.topic, partition: first.partition, firstOffset, count: part.length, appendTimeMs }
  }
}
