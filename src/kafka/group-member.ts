import { HooktideError } from '../core/error.ts'
import type { GroupOffset, TopicPartition } from '../core/record.ts'
import type { Clock } from '../ports.ts'
import type { GroupAssigner } from './group-assigner.ts'
import { groupError, troubleOf } from './group-errors.ts'
import type { GroupLink } from './group-link.ts'
import { library } from './load.ts'

export interface GroupTimes {
  /** The coordinator forgets a member it has not heard of for this long. */
  readonly sessionMs: number
  readonly heartbeatMs: number
  /** How long the coordinator waits in a rebalance for each member to drain and join. */
  readonly rebalanceMs: number
}

export interface Joined {
  readonly assigned: readonly TopicPartition[]
  readonly generation: number
  /** No other member can have owned in between what we owned before: same member id, the very next generation. */
  readonly continuous: boolean
}

interface Membership {
  readonly memberId: string
  readonly generation: number
}

/**
 * Our membership: JoinGroup, SyncGroup, Heartbeat, OffsetCommit, LeaveGroup (KIP-62, KIP-394), each sent once with the
 * member id and generation of the moment of the call. It survives a change of connections: after an outage one answered
 * heartbeat shows that the generation, and with it everything we own, is still ours.
 */
export class GroupMember {
  readonly #clock: Clock
  readonly #group: string
  readonly #times: GroupTimes
  readonly #assigner: GroupAssigner
  /** What rejoining presents; empty for a newcomer. Presenting it spares the group waiting for a ghost's session to end. */
  #memberId = ''
  /** The membership of the last assignment, as long as commits under it are accepted. */
  #current: Membership | undefined
  #joining = false
  #confirmedMono = Number.NEGATIVE_INFINITY

  constructor(clock: Clock, group: string, times: GroupTimes, assigner: GroupAssigner) {
    this.#clock = clock
    this.#group = group
    this.#times = times
    this.#assigner = assigner
  }

  /** False when there never was a membership, or it is lost. */
  get active(): boolean {
    return this.#current !== undefined
  }

  leaseAgeMs(): number {
    return this.#current === undefined ? Number.POSITIVE_INFINITY : this.#clock.mono() - this.#confirmedMono
  }

  /** Nothing may be committed any more, and nothing counts as kept. */
  lose(error: unknown): void {
    this.#current = undefined
    if ((error as { type?: unknown } | null)?.type === 'UNKNOWN_MEMBER_ID') this.#memberId = ''
  }

  /** One JoinGroup and one SyncGroup. After a failure in between the old membership stays for the next attempt to judge. */
  async join(link: GroupLink, owned: readonly TopicPartition[]): Promise<Joined> {
    const before = this.#current
    this.#joining = true
    try {
      const claim = this.#assigner.subscription(before === undefined ? [] : owned, before?.generation ?? -1)
      const joined = await this.#joinGroup(link, claim)
      const { memberId, generationId } = joined
      let groupAssignment: readonly { memberId: string; memberAssignment: Buffer }[] = []
      if (memberId === joined.leaderId) {
        // The leader deals what it knows of: partitions may have been added.
        await link.refresh()
        groupAssignment = this.#assigner.assign(link.counts(), joined.members)
      }
      const sentMono = this.#clock.mono()
      const { memberAssignment } = await link.call<{ memberAssignment: Buffer }>(
        await link.coordinator(this.#group),
        'SyncGroup',
        { groupId: this.#group, generationId, memberId, groupAssignment },
        this.#times.rebalanceMs,
      )
      this.#confirmedMono = sentMono
      this.#current = { memberId, generation: generationId }
      return {
        assigned: this.#assigner.assignment(memberAssignment),
        generation: generationId,
        continuous: before?.memberId === memberId && before.generation + 1 === generationId,
      }
    } finally {
      this.#joining = false
    }
  }

  async #joinGroup(link: GroupLink, claim: { name: string; metadata: Buffer }): Promise<JoinedGroup> {
    for (;;) {
      try {
        const joined = await link.call<JoinedGroup>(
          await link.coordinator(this.#group),
          'JoinGroup',
          {
            groupId: this.#group,
            sessionTimeout: this.#times.sessionMs,
            rebalanceTimeout: this.#times.rebalanceMs,
            memberId: this.#memberId,
            protocolType: 'consumer',
            groupProtocols: [claim],
          },
          this.#times.rebalanceMs,
        )
        this.#memberId = joined.memberId
        return joined
      } catch (error) {
        // KIP-394: a newcomer is told its id first, so that it can be forgotten when it never comes back.
        const { type, response } = error as { type?: string; response?: JoinedGroup }
        if (type !== 'MEMBER_ID_REQUIRED' || response === undefined || this.#memberId !== '') throw error
        this.#memberId = response.memberId
      }
    }
  }

  async heartbeat(link: GroupLink): Promise<void> {
    const current = this.#current
    if (current === undefined) return
    const node = await link.coordinator(this.#group)
    const sentMono = this.#clock.mono()
    try {
      await link.call(node, 'Heartbeat', {
        groupId: this.#group,
        groupGenerationId: current.generation,
        memberId: current.memberId,
      })
      this.#confirm(current, sentMono)
    } catch (error) {
      // While a rebalance gathers its members the answer is this error, and the session is extended all the same.
      if (troubleOf(error) === 'rebalance') this.#confirm(current, sentMono)
      throw error
    }
  }

  /** A heartbeat while something else goes on. Never rejects; false when the membership is gone. */
  async beat(link: GroupLink): Promise<boolean> {
    try {
      await this.heartbeat(link)
    } catch (error) {
      if (troubleOf(error) === 'evicted') this.lose(error)
    }
    return this.active
  }

  /**
   * One OffsetCommit under the generation that holds now. Never repeated here: kafkajs's own retry would send it again
   * under the generation of a later rejoin, and turn back the offset of whoever owns the partition then.
   */
  async commit(link: GroupLink | undefined, offsets: readonly GroupOffset[]): Promise<void> {
    const current = this.#current
    if (link === undefined || current === undefined || this.#joining)
      throw new HooktideError('consumer.failed', `Commit of group ${this.#group} refused: it is not a member now`)
    try {
      const node = await link.coordinator(this.#group)
      // Looking for the coordinator may have taken long.
      if (this.#current !== current || this.#joining)
        throw new HooktideError(
          'consumer.failed',
          `Commit of group ${this.#group} refused: a rebalance came in between`,
        )
      const sentMono = this.#clock.mono()
      const { responses } = await link.call<{
        responses: { topic: string; partitions: { partition: number; errorCode: number }[] }[]
      }>(node, 'OffsetCommit', {
        groupId: this.#group,
        groupGenerationId: current.generation,
        memberId: current.memberId,
        topics: byTopic(offsets),
      })
      const failed = responses.flatMap((r) => r.partitions).find((p) => p.errorCode !== 0)
      if (failed !== undefined) throw library.createErrorFromCode(failed.errorCode)
      this.#confirm(current, sentMono)
    } catch (error) {
      if (troubleOf(error) === 'coordinator') link.forgetCoordinator(this.#group, error)
      throw groupError(error, 'commit offsets', this.#group)
    }
  }

  /** Without it the group waits for our session to end. */
  async leave(link: GroupLink): Promise<void> {
    if (this.#memberId === '') return
    const memberId = this.#memberId
    this.#memberId = ''
    this.#current = undefined
    await link.call(await link.coordinator(this.#group), 'LeaveGroup', { groupId: this.#group, memberId })
  }

  /** True when `leave` has something to do. */
  get known(): boolean {
    return this.#memberId !== ''
  }

  #confirm(current: Membership, sentMono: number): void {
    if (this.#current === current) this.#confirmedMono = Math.max(this.#confirmedMono, sentMono)
  }
}

interface JoinedGroup {
  readonly generationId: number
  readonly leaderId: string
  readonly memberId: string
  readonly members: readonly { memberId: string; memberMetadata: Buffer }[]
}

function byTopic(offsets: readonly GroupOffset[]) {
  const topics = new Map<string, { partition: number; offset: string; metadata: string }[]>()
  for (const { topic, partition, offset, metadata } of offsets) {
    const partitions = topics.get(topic) ?? []
    topics.set(topic, partitions)
    partitions.push({ partition, offset: String(offset), metadata })
  }
  return [...topics].map(([topic, partitions]) => ({ topic, partitions }))
}
