import { assignLanes, assignPartitions } from '../../src/core/assign.ts'
import type { GroupOffset, TopicPartition } from '../../src/core/record.ts'
import type { FakeClock } from './fake-clock.ts'
import { keyOf, ProtocolError } from './protocol.ts'
import type { OffsetStore } from './transactions.ts'

export interface JoinRequest {
  /** null: a new member. */
  readonly memberId: string | null
  readonly processId: string
  readonly topics: readonly string[]
  readonly assign: 'lanes' | 'partitions'
  readonly owned: readonly TopicPartition[]
  readonly ownedGeneration: number
}

export interface Joined {
  readonly memberId: string
  readonly generation: number
}

export interface GroupOptions {
  readonly sessionTimeoutMs: number
  readonly rebalanceTimeoutMs: number
  /** How long the first members of an empty group wait for others. */
  readonly initialDelayMs: number
  partitionCount(topic: string): number | null
}

interface Member extends JoinRequest {
  readonly id: string
  seenMonoMs: number
  joined: { resolve(joined: Joined): void; reject(error: Error): void } | null
  assignment: readonly TopicPartition[]
}

/**
 * The group coordinator of the classic, eager protocol: generations, session and rebalance time-outs, and committed
 * offsets. A rebalance waits until every known member has rejoined; who does not in time is out and learns it at its next call.
 */
export class Group implements OffsetStore {
  readonly #clock: FakeClock
  readonly #options: GroupOptions
  readonly #members = new Map<string, Member>()
  readonly #offsets = new Map<string, GroupOffset>()
  #generation = 0
  #rebalancing = false
  #cancelRebalance = () => {}
  #notBeforeMs = 0
  #serial = 0
  /** Every committed position ever, for checkers: positions must never go back. */
  readonly commits: (GroupOffset & { readonly monoMs: number })[] = []

  constructor(clock: FakeClock, options: GroupOptions) {
    this.#clock = clock
    this.#options = options
  }

  join(request: JoinRequest): Promise<Joined> {
    if (request.memberId !== null && !this.#members.has(request.memberId)) throw new ProtocolError('unknown-member')
    const id = request.memberId ?? `${request.processId}#${++this.#serial}`
    const known = this.#members.get(id)
    known?.joined?.reject(new ProtocolError('rebalance-in-progress'))
    return new Promise((resolve, reject) => {
      this.#members.set(id, {
        ...request,
        id,
        seenMonoMs: this.#clock.mono(),
        joined: { resolve, reject },
        assignment: known?.assignment ?? [],
      })
      if (known === undefined) this.#watchSession(id)
      if (this.#members.size === 1 && !this.#rebalancing && known === undefined) {
        this.#notBeforeMs = this.#clock.mono() + this.#options.initialDelayMs
        this.#clock.after(this.#options.initialDelayMs, () => this.#completeIfAll())
      }
      this.#startRebalance()
    })
  }

  sync(memberId: string, generation: number): readonly TopicPartition[] {
    const member = this.#confirm(memberId, generation)
    if (this.#rebalancing) throw new ProtocolError('rebalance-in-progress')
    return member.assignment
  }

  heartbeat(memberId: string, generation: number): void {
    this.#confirm(memberId, generation)
    if (this.#rebalancing) throw new ProtocolError('rebalance-in-progress')
  }

  /** Accepted while a rebalance is under way, as long as the generation is the member's. Counts as a heartbeat. */
  commit(memberId: string, generation: number, offsets: readonly GroupOffset[]): void {
    this.#confirm(memberId, generation)
    for (const { metadata } of offsets) if (metadata.length > 4096) throw new ProtocolError('metadata-too-large')
    this.apply(offsets)
  }

  leave(memberId: string): void {
    if (this.#members.has(memberId)) this.#remove(memberId)
  }

  /** Membership ends without a word to the member. */
  expire(processId: string): void {
    for (const member of [...this.#members.values()]) if (member.processId === processId) this.#remove(member.id)
  }

  apply(offsets: readonly GroupOffset[]): void {
    for (const offset of offsets) {
      this.#offsets.set(keyOf(offset), offset)
      this.commits.push({ ...offset, monoMs: this.#clock.mono() })
    }
  }

  committed(at: TopicPartition): GroupOffset {
    const found = this.#offsets.get(keyOf(at))
    return { topic: at.topic, partition: at.partition, offset: found?.offset ?? null, metadata: found?.metadata ?? '' }
  }

  get generation(): number {
    return this.#generation
  }

  get size(): number {
    return this.#members.size
  }

  /** Who owns what by the coordinator's own book. */
  owners(): ReadonlyMap<string, string> {
    const owners = new Map<string, string>()
    for (const m of this.#members.values()) for (const at of m.assignment) owners.set(keyOf(at), m.processId)
    return owners
  }

  #confirm(memberId: string, generation: number): Member {
    const member = this.#members.get(memberId)
    if (member === undefined) throw new ProtocolError('unknown-member')
    if (generation !== this.#generation) throw new ProtocolError('illegal-generation')
    member.seenMonoMs = this.#clock.mono()
    return member
  }

  #startRebalance(): void {
    if (!this.#rebalancing) {
      this.#rebalancing = true
      this.#cancelRebalance = this.#clock.after(this.#options.rebalanceTimeoutMs, () => {
        for (const member of [...this.#members.values()]) if (member.joined === null) this.#members.delete(member.id)
        this.#complete()
      })
    }
    this.#completeIfAll()
  }

  #completeIfAll(): void {
    if (!this.#rebalancing || this.#clock.mono() < this.#notBeforeMs) return
    for (const member of this.#members.values()) if (member.joined === null) return
    this.#complete()
  }

  #complete(): void {
    this.#cancelRebalance()
    this.#rebalancing = false
    this.#generation++
    const members = [...this.#members.values()]
    const first = members[0]
    if (first === undefined) return
    const counts = new Map<string, number>()
    for (const topic of members.flatMap((m) => m.topics)) counts.set(topic, this.#options.partitionCount(topic) ?? 0)
    const assign = first.assign === 'lanes' ? assignLanes : assignPartitions
    const shares = assign(
      counts,
      members.map((m) => ({ id: m.id, owned: m.owned, generation: m.ownedGeneration })),
    )
    for (const member of members) {
      member.assignment = shares.get(member.id) ?? []
      member.seenMonoMs = this.#clock.mono()
      member.joined?.resolve({ memberId: member.id, generation: this.#generation })
      member.joined = null
    }
  }

  #remove(memberId: string): void {
    this.#members.get(memberId)?.joined?.reject(new ProtocolError('unknown-member'))
    this.#members.delete(memberId)
    if (this.#rebalancing) this.#completeIfAll()
    else this.#startRebalance()
  }

  #watchSession(memberId: string): void {
    const member = this.#members.get(memberId)
    if (member === undefined) return
    // Who waits for the others in a join can't send heartbeats and is not expected to.
    const seenMs = member.joined === null ? member.seenMonoMs : this.#clock.mono()
    const leftMs = seenMs + this.#options.sessionTimeoutMs - this.#clock.mono()
    if (leftMs <= 0) this.#remove(memberId)
    else this.#clock.after(leftMs, () => this.#watchSession(memberId))
  }
}
