import { HooktideError } from '../core/error.ts'
import type { Subscription } from '../core/subscription.ts'
import type { ApiClient } from './api-client.ts'
import type { SubscriptionList, SubscriptionOperations, WrittenSubscription } from './contract.ts'
import { nothingRemoved } from './subscription-input-rules.ts'

export function remoteSubscriptions(api: ApiClient): SubscriptionOperations {
  const at = (id: string, what = '') => `/subscriptions/${encodeURIComponent(id)}${what}`
  const write = async (
    method: string,
    path: string,
    body: unknown,
    ifVersion?: string,
  ): Promise<WrittenSubscription> => {
    const headers: Record<string, string> = ifVersion === undefined ? {} : { 'if-match': matching(ifVersion) }
    const { value, etag } = await api.ask<Omit<WrittenSubscription, 'version'>>(method, path, { body, headers })
    return { ...value, version: etag }
  }
  return {
    list({ tenant, status, reveal = false }) {
      refuseReveal(reveal)
      return api.get('/subscriptions', { tenant, status })
    },
    async show(id, { reveal = false } = {}) {
      refuseReveal(reveal)
      const { value, etag } = await api.ask<Subscription>('GET', at(id))
      return { subscription: value, version: etag }
    },
    add: (input, { verify } = {}) =>
      write('POST', verify === undefined ? '/subscriptions' : `/subscriptions?verify=${verify}`, input),
    change: (id, fields, ifVersion = '*') => write('PATCH', at(id), fields, ifVersion),
    replace: (id, input, ifVersion = '*') => write('PUT', at(id), input, ifVersion),
    setStatus(id, status, reason) {
      if (status === 'disabled') return write('PATCH', at(id), { status, statusReason: reason }, '*')
      return write('POST', at(id, status === 'paused' ? '/pause' : '/resume'), { reason })
    },
    rotateSecret: (id, options) => write('POST', at(id, '/rotate-secret'), options),
    async remove(ids, ifVersion = '*') {
      // All of them must be there before one is removed.
      const { subscriptions, unreadable } = await api.get<SubscriptionList>('/subscriptions')
      const known = new Set([...subscriptions, ...unreadable].map(({ id }) => id))
      const unknown = ids.filter((id) => !known.has(id))
      if (unknown.length > 0) throw nothingRemoved(unknown)
      for (const id of ids) await api.ask('DELETE', at(id), { headers: { 'if-match': matching(ifVersion) } })
      return { removed: ids }
    },
    apply(items, { prune, dryRun, label }) {
      const pruned = prune === null ? {} : { prune: true, tenant: prune.tenant ?? undefined }
      return api.post('/subscriptions/apply', { subscriptions: items, dryRun, label, ...pruned })
    },
    test: (id) => api.post(at(id, '/test')),
    health: (id) => api.get(at(id, '/health')),
    async verify(ids) {
      const verified = []
      for (const id of ids) {
        const one = await api.post<{
          verified: { id: string; verified: boolean; detail: string; status: Subscription['status'] }[]
        }>(at(id, '/verify'))
        verified.push(...one.verified)
      }
      return { verified }
    },
  }
}

function matching(version: string): string {
  return version === '*' ? '*' : `"${version}"`
}

function refuseReveal(reveal: boolean): void {
  if (!reveal) return
  throw new HooktideError('usage', 'the API tells nobody what is hidden', {
    remedy: 'Leave --reveal out, or run the command on Kafka itself, without --api-url.',
  })
}
