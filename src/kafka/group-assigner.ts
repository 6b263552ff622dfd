import { type AssignMember, assignLanes, assignPartitions } from '../core/assign.ts'
import type { TopicPartition } from '../core/record.ts'
import { library } from './load.ts'

const { MemberMetadata, MemberAssignment } = library.kafkajs.AssignerProtocol

export interface GroupAssigner {
  /** What a member says of itself in JoinGroup: its topics, and what it owned as of which generation. */
  subscription(owned: readonly TopicPartition[], generation: number): { name: string; metadata: Buffer }
  /** The leader's part: who gets what. */
  assign(
    counts: ReadonlyMap<string, number>,
    members: readonly { memberId: string; memberMetadata: Buffer }[],
  ): { memberId: string; memberAssignment: Buffer }[]
  /** What the leader gave us; topics we did not ask for are left out. */
  assignment(bytes: Buffer): TopicPartition[]
}

/** Sticky, eager (KIP-54's idea, own user data). The protocol name keeps members with another assigner out of the group. */
export function createGroupAssigner(mode: 'lanes' | 'partitions', topics: readonly string[]): GroupAssigner {
  const name = `hooktide-${mode}`
  const assign = mode === 'lanes' ? assignLanes : assignPartitions
  return {
    subscription: (owned, generation) => ({
      name,
      metadata: MemberMetadata.encode({
        version: 0,
        topics: [...topics],
        userData: Buffer.from(JSON.stringify({ generation, owned: byTopic(owned) })),
      }),
    }),
    assign: (counts, members) => {
      const shares = assign(
        counts,
        members.map(({ memberId, memberMetadata }) => ({ id: memberId, ...claimOf(memberMetadata) })),
      )
      return [...shares].map(([memberId, mine]) => ({
        memberId,
        memberAssignment: MemberAssignment.encode({ version: 0, assignment: byTopic(mine), userData: Buffer.alloc(0) }),
      }))
    },
    assignment: (bytes) => {
      const given = MemberAssignment.decode(bytes)?.assignment ?? {}
      return Object.entries(given).flatMap(([topic, partitions]) =>
        topics.includes(topic) ? [...partitions].sort((a, b) => a - b).map((partition) => ({ topic, partition })) : [],
      )
    },
  }
}

function byTopic(partitions: readonly TopicPartition[]): Record<string, number[]> {
  const result: Record<string, number[]> = {}
  for (const { topic, partition } of partitions) {
    result[topic] ??= []
    result[topic].push(partition)
  }
  return result
}

/** A claim that can't be read is no claim: another version of us, at worst its lanes move. */
function claimOf(metadata: Buffer): Pick<AssignMember, 'owned' | 'generation'> {
  try {
    const { userData } = MemberMetadata.decode(metadata) ?? {}
    const claim: unknown = JSON.parse(String(userData))
    const { generation, owned } = claim as { generation: unknown; owned: unknown }
    if (!Number.isSafeInteger(generation)) return { owned: [], generation: -1 }
    return {
      generation: generation as number,
      owned: Object.entries(owned as Record<string, number[]>).flatMap(([topic, partitions]) =>
        partitions.map((partition) => ({ topic, partition })),
      ),
    }
  } catch {
    return { owned: [], generation: -1 }
  }
}
