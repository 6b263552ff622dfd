import type { TopicPartition } from '../core/record.ts'
import type { GroupState } from '../ports.ts'
import { adminError, adminFailure } from './admin-errors.ts'
import type { Link } from './link.ts'
import { library } from './load.ts'

interface ListResponse {
  readonly errorCode: number
  readonly groups: readonly { groupId: string }[]
}

interface DescribeResponse {
  readonly groups: readonly {
    errorCode: number
    groupId: string
    state: string
    members: readonly { memberId: string; clientId: string; clientHost: string; memberAssignment: Buffer }[]
  }[]
}

/** Each broker knows the groups it coordinates: all are asked. */
export async function listGroups(link: Link, nodeIds: readonly number[], prefix: string): Promise<GroupState[]> {
  const lists = await Promise.all(
    nodeIds.map(async (nodeId) => {
      const broker = await link.node(nodeId)
      const { errorCode, groups } = await link.request<ListResponse>(broker, 'ListGroups', {})
      if (errorCode !== 0) throw adminError(errorCode, { operation: 'list groups', acl: 'DESCRIBE on the cluster' })
      return groups.map(({ groupId }) => groupId)
    }),
  )
  const names = lists.flat().filter((name) => name.startsWith(prefix))
  return Promise.all(names.sort().map((name) => describeGroup(link, name)))
}

async function describeGroup(link: Link, name: string): Promise<GroupState> {
  const asked = { operation: 'describe group', group: name, acl: `DESCRIBE on group ${name}` }
  try {
    const broker = await link.coordinator('group', name)
    const { groups } = await link.request<DescribeResponse>(broker, 'DescribeGroups', { groupIds: [name] })
    const group = groups[0]
    if (group === undefined || group.errorCode !== 0) throw adminError(group?.errorCode ?? -1, asked)
    return {
      group: name,
      state: group.state,
      members: group.members.map((member) => ({
        id: member.memberId,
        clientId: member.clientId,
        host: member.clientHost,
        partitions: partitionsOf(member.memberAssignment),
      })),
    }
  } catch (error) {
    link.forget(error, { coordinators: [`group:${name}`] })
    throw adminFailure(error, asked)
  }
}

/** Empty while the group is joining; a group of another protocol (Connect) has something else in it. */
function partitionsOf(assignment: Buffer): TopicPartition[] {
  if (assignment.length === 0) return []
  try {
    const decoded = library.kafkajs.AssignerProtocol.MemberAssignment.decode(assignment)
    return Object.entries(decoded?.assignment ?? {}).flatMap(([topic, partitions]) =>
      partitions.map((partition) => ({ topic, partition })),
    )
  } catch {
    return []
  }
}
