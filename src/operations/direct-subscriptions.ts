import { HooktideError } from '../core/error.ts'
import type { Subscription, SubscriptionStatus } from '../core/subscription.ts'
import type { Caller, SubscriptionOperations, WrittenSubscription } from './contract.ts'
import { refuseBlocked } from './endpoint-guard.ts'
import { verifyEndpoints } from './endpoint-verify.ts'
import type { OperationParts } from './parts.ts'
import { refuseReferences } from './reference-rules.ts'
import { isMap, newId, nothingRemoved, refuseMasked, sameId } from './subscription-input-rules.ts'
import { planSubscriptions, withKept } from './subscription-plan.ts'
import { rotated } from './subscription-secret.ts'
import { found, type SubscriptionSnapshot, type SubscriptionTable } from './subscription-store.ts'
import { sendTest } from './subscription-test.ts'
import { verifiedJson, verifyParts, writeVerified } from './subscription-verified.ts'
import { visible, visiblePlan } from './subscription-visible.ts'
import { checkedInput, guardOf, makeAsked, newEndpoints } from './subscription-write.ts'

/** Subscriptions over Kafka. Of other tenants than the caller's nothing is seen, and nothing can be changed. */
export function directSubscriptions(parts: OperationParts, caller: Caller): SubscriptionOperations {
  const { subscriptions: store, clock } = parts
  const isMine = (tenant: string) => caller.tenant === null || caller.tenant === tenant

  /** What the caller may know of. What can't be read belongs to nobody, so only operators see it. */
  function mine(table: SubscriptionTable): SubscriptionTable {
    if (caller.tenant === null) return table
    return new Map([...table].filter(([, entry]) => entry.ok && isMine(entry.value.tenant)))
  }

  /** A tenant's caller writes for its tenant, whether it says so or not. */
  function forCaller(input: Record<string, unknown>): Record<string, unknown> {
    if (caller.tenant === null) return input
    if (input.tenant !== undefined && input.tenant !== caller.tenant) {
      throw new HooktideError('forbidden', `this caller writes for tenant ${caller.tenant} only`, {
        problems: [{ field: 'tenant', value: '', message: 'is not yours', remedy: 'leave it out' }],
      })
    }
    return { ...input, tenant: caller.tenant }
  }

  function expect(id: string, snapshot: SubscriptionSnapshot, ifVersion: string | undefined): Subscription {
    const existing = found(mine(snapshot.table), id)
    const version = snapshot.versions.get(id)
    if (ifVersion === undefined || ifVersion === '*' || ifVersion === version) return existing
    throw new HooktideError('precondition.failed', `subscription ${id} was changed since`, {
      remedy: 'Read it again, make the change on what stands there now, and send its ETag.',
    })
  }

  /** Reads, decides, writes; alone with the id, as far as this process goes. */
  function change(
    id: string,
    ifVersion: string | undefined,
    decide: (existing: Subscription) => Subscription | Promise<Subscription>,
  ): Promise<WrittenSubscription> {
    return store.alone(id, async () => {
      const snapshot = await store.snapshot()
      const existing = expect(id, snapshot, ifVersion)
      const checked = await decide(existing)
      refuseReferences(caller, existing, checked)
      const moved = checked.url !== existing.url
      const notes = moved ? await refuseBlocked(parts, [checked]) : []
      return write(checked, snapshot, notes, moved && parts.config.endpoints.challenge === 'on')
    })
  }

  async function write(
    checked: Subscription,
    snapshot: SubscriptionSnapshot,
    notes: readonly string[],
    verify: boolean,
  ): Promise<WrittenSubscription> {
    const asked = await makeAsked(parts, checked)
    const secretIsNew = asked.made.length > 0
    const written = await writeVerified(parts, [asked.subscription], snapshot.ends, { verify, secretIsNew })
    return {
      subscription: visible(written.subscriptions[0] as Subscription, false),
      version: written.versions.get(checked.id) as string,
      newSecrets: asked.made.map(({ ref, secret }) => ({ ref, secret: secret.reveal() })),
      notes: [...notes, ...written.notes],
    }
  }

  return {
    async list({ tenant, status, reveal = false }) {
      const entries = [...mine(await store.read())]
      const all = tenant === undefined && status === undefined
      return {
        subscriptions: entries.flatMap(([, entry]) => {
          if (!entry.ok) return []
          const { value } = entry
          if (value.tenant !== (tenant ?? value.tenant) || value.status !== (status ?? value.status)) return []
          return [visible(value, reveal)]
        }),
        unreadable: entries.flatMap(([id, entry]) => (entry.ok || !all ? [] : [{ id, reason: entry.reason }])),
      }
    },

    async show(id, { reveal = false } = {}) {
      const { table, versions } = await store.snapshot()
      const subscription = visible(found(mine(table), id), reveal)
      return { subscription, version: versions.get(id) as string }
    },

    async add(input, { verify = parts.config.endpoints.challenge === 'on' } = {}) {
      const id = typeof input.id === 'string' ? input.id : newId()
      return store.alone(id, async () => {
        const snapshot = await store.snapshot()
        if (snapshot.table.has(id)) {
          throw new HooktideError('conflict', `there is a subscription ${id} already`, {
            remedy: 'Change it with `hooktide subscriptions update`, or give another --id.',
          })
        }
        refuseMasked(input)
        const checked = checkedInput(forCaller(input), {
          ...{ nowMs: clock.now(), id, guard: guardOf(parts) },
          maxTimeoutMs: parts.config.http.totalTimeoutMs,
        })
        refuseReferences(caller, undefined, checked)
        return write(checked, snapshot, await refuseBlocked(parts, [checked]), verify)
      })
    },

    change(id, fields, ifVersion) {
      return change(id, ifVersion, (existing) => {
        refuseMasked(fields)
        const given = forCaller(fields)
        const { statusReason, ...rest } = existing
        const kept = given.status === undefined && statusReason !== undefined ? existing : rest
        const merged: Record<string, unknown> = { ...kept, ...given }
        if (isMap(given.retry)) merged.retry = { ...existing.retry, ...given.retry }
        for (const [name, value] of Object.entries(merged)) if (value === null) delete merged[name]
        return checkedInput({ ...merged, ...sameId(existing, fields) }, inputContext(existing))
      })
    },

    replace(id, input, ifVersion) {
      return change(id, ifVersion, (existing) => {
        refuseMasked(input)
        const wanted = { ...withKept(forCaller(input), existing), ...sameId(existing, input) }
        return checkedInput(wanted, inputContext(existing))
      })
    },

    setStatus(id, status: SubscriptionStatus, reason) {
      return change(id, undefined, ({ statusReason: _, ...before }) => ({
        ...before,
        status,
        ...(reason === undefined ? {} : { statusReason: reason }),
        updatedAtMs: Math.floor(clock.now()),
      }))
    },

    rotateSecret(id, { ref, overlapMs }) {
      return change(id, undefined, (existing) => {
        const secrets = rotated(existing.secrets, ref, clock.now(), overlapMs)
        return checkedInput({ ...existing, secrets }, inputContext(existing))
      })
    },

    async remove(ids, ifVersion) {
      const snapshot = await store.snapshot()
      const table = mine(snapshot.table)
      const unknown = ids.filter((id) => !table.has(id))
      if (unknown.length > 0) {
        throw nothingRemoved(unknown)
      }
      if (ifVersion !== undefined) for (const id of ids) expect(id, snapshot, ifVersion)
      await store.write(
        ids.map((id) => ({ id, subscription: null })),
        snapshot.ends,
      )
      return { removed: ids }
    },

    async apply(items, { prune, dryRun, label }) {
      const snapshot = await store.snapshot()
      const table = snapshot.table
      const given = items.map((item) => (isMap(item) ? forCaller(item) : item))
      refuseForeign(given, table)
      const plan = planSubscriptions(given, table, {
        nowMs: clock.now(),
        guard: guardOf(parts),
        maxTimeoutMs: parts.config.http.totalTimeoutMs,
        prune: prune === null ? null : { tenant: caller.tenant ?? prune.tenant },
      })
      if (plan.problems.length > 0) {
        throw new HooktideError('subscription.invalid', `${label} was not applied: it has problems`, {
          details: plan.problems,
          remedy: 'Correct every line named.',
        })
      }
      for (const { id, subscription } of plan.items) {
        const before = table.get(id)
        if (subscription !== null)
          refuseReferences(caller, before?.ok === true ? before.value : undefined, subscription)
      }
      const asked = newEndpoints(plan)
      const notes = [...(await refuseBlocked(parts, asked))]
      if (!dryRun) {
        const changed = plan.items.filter(({ action }) => action !== 'unchanged')
        const verify = parts.config.endpoints.challenge === 'on'
        await store.write(
          changed.filter(({ id }) => !verify || !asked.some((each) => each.id === id)),
          snapshot.ends,
        )
        const options = { verify, secretIsNew: false }
        if (verify) notes.push(...(await writeVerified(parts, asked, snapshot.ends, options)).notes)
      }
      return visiblePlan(plan, !dryRun, notes)
    },

    async verify(ids) {
      const table = mine(await store.read())
      const results = await verifyEndpoints(
        verifyParts(parts),
        ids.map((id) => found(table, id)),
      )
      return { verified: results.map(verifiedJson) }
    },

    async test(id) {
      return sendTest(parts, found(mine(await store.read()), id))
    },

    async health(id) {
      const subscription = found(mine(await store.read()), id)
      const { status, statusReason } = subscription
      const health = (await parts.state?.subscriptionHealth(id, subscription.tenant)) ?? null
      return { id, status, statusReason: statusReason ?? null, health }
    },
  }

  function inputContext(existing: Subscription) {
    const maxTimeoutMs = parts.config.http.totalTimeoutMs
    return { nowMs: clock.now(), existing, guard: guardOf(parts), maxTimeoutMs }
  }

  /** Ids are one for all tenants: that one is taken is all there is to know of it. */
  function refuseForeign(items: readonly unknown[], table: SubscriptionTable): void {
    const taken = items.flatMap((item) => {
      const entry = isMap(item) && typeof item.id === 'string' ? table.get(item.id) : undefined
      return entry === undefined || caller.tenant === null || (entry.ok && isMine(entry.value.tenant)) ? [] : [item]
    })
    if (taken.length === 0) return
    const details = taken.map((item) => `${(item as { id: string }).id}: is taken`)
    throw new HooktideError('conflict', 'nothing was applied: ids are taken', {
      details,
      remedy: 'Give these subscriptions other ids.',
    })
  }
}
