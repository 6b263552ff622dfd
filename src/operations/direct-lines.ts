import type { Control } from '../core/control.ts'
import { HooktideError } from '../core/error.ts'
import { subscriptionOfLine } from '../core/line.ts'
import type { LogReader } from '../ports.ts'
import type { Caller, LineChoiceInput, LineOperations, LineOrdered } from './contract.ts'
import { orderOf } from './give-order.ts'
import { lineDetailsJson, lineJson } from './line-json.ts'
import { chooseLine, readHead, readLines, readParked, type StandingLine } from './line-read.ts'
import type { OrderInput } from './order-input.ts'
import type { OperationParts } from './parts.ts'

/** Lines over Kafka. A tenant's caller sees those of its own subscriptions. */
export function directLines(parts: OperationParts, caller: Caller): LineOperations {
  const { kafka, config, clock, control } = parts

  async function open<T>(run: (standing: readonly StandingLine[], reader: LogReader) => Promise<T>): Promise<T> {
    const reader = kafka.reader()
    try {
      return await run(await mine(await readLines(kafka, reader, config)), reader)
    } finally {
      await reader.close()
    }
  }

  async function mine(standing: readonly StandingLine[]): Promise<readonly StandingLine[]> {
    if (caller.tenant === null) return standing
    const table = await parts.subscriptions.read()
    return standing.filter(({ state }) => {
      const entry = table.get(subscriptionOfLine(state.line))
      return entry?.ok === true && entry.value.tenant === caller.tenant
    })
  }

  async function release(key: string, head: string, standing: readonly StandingLine[], input: OrderInput) {
    const before = await control.order({ kind: 'line', target: key })
    // One order per line: the cancel it takes the place of still holds for what was before it.
    const args = { head, ...cancelKept(before) }
    return give({ kind: 'line', target: key, order: 'resume', args }, input, key, head, standing)
  }

  async function give(
    what: Parameters<typeof orderOf>[2],
    input: OrderInput,
    line: string,
    head: string | null,
    standing: readonly StandingLine[],
  ): Promise<LineOrdered> {
    const order = orderOf(clock.now(), caller, what, input)
    await control.give(order)
    return { line, order, head, parked: parkedOf(line, standing) }
  }

  return {
    list: ({ subscription, state, limit }) =>
      open(async (standing) => {
        const all = standing
          .filter((one) => state === undefined || one.state.state === state)
          .filter((one) => [undefined, subscriptionOfLine(one.state.line)].includes(subscription))
          .sort((a, b) => a.state.sinceMs - b.state.sinceMs)
        return { lines: all.slice(0, limit).map(lineJson), total: all.length }
      }),

    show: (choice, limit) =>
      open(async (standing, reader) => {
        const found = standingOnes(choose(choice, standing), standing)
        const orders = await control.read()
        const lines = []
        for (const line of found) {
          const head = await readHead(kafka, reader, config, line)
          const parked = await readParked(reader, config, line, limit)
          const order = orders.get(`line:${line.state.line}`)?.order ?? null
          lines.push(lineDetailsJson({ line, head, parked, order }))
        }
        return { lines }
      }),

    release: (choice, input) =>
      open(async (standing) => {
        const key = choose(choice, standing)
        const head = standingHead(key, standing)
        if (head === null) return { line: key, order: null, head, parked: parkedOf(key, standing) }
        return release(key, head, standing, input)
      }),

    skip: (choice, input) =>
      open(async (standing) => {
        const key = choose(choice, standing)
        const head = standingHead(key, standing)
        if (head === null) {
          throw new HooktideError('check.failed', `nothing stands at the front of ${key}: it goes on`, {
            remedy: '`hooktide lines cancel` cancels all that waits in it.',
          })
        }
        // A dead head is settled: cancelled, it could not be redriven any more.
        if (standingOnes(key, standing).some(({ state }) => state.state === 'stopped'))
          return release(key, head, standing, input)
        const args = { line: key, ...(input.dead === true ? { to: 'dead' } : {}) }
        return give({ kind: 'delivery', target: head, order: 'cancel', args }, input, key, head, standing)
      }),

    cancel: (choice, input) =>
      open(async (standing) => {
        const key = choose(choice, standing)
        // Its lines may all be open now: an operator can cancel what is under way to one; a tenant's caller must own it.
        if (caller.tenant !== null) standingOnes(key, standing)
        const parked = parkedOf(key, standing)
        if (!input.confirmed) {
          const what = `${parked} parked ${parked === 1 ? 'delivery' : 'deliveries'}`
          throw new HooktideError(
            'usage',
            `this would cancel ${what} of ${key}, its head, and what is under way to it`,
            {
              remedy: 'Say --yes to do it.',
            },
          )
        }
        const args: NonNullable<Control['args']> = input.dead === true ? { to: 'dead' } : {}
        return give({ kind: 'line', target: key, order: 'cancel', args }, input, key, null, standing)
      }),
  }
}

function choose({ line, subscription, key }: LineChoiceInput, standing: readonly StandingLine[]): string {
  return chooseLine({ line: line === undefined ? [] : [line], subscription, key }, standing)
}

function parkedOf(key: string, standing: readonly StandingLine[]): number {
  return standing.filter(({ state }) => state.line === key).reduce((sum, { state }) => sum + state.count, 0)
}

function standingOnes(key: string, standing: readonly StandingLine[]): readonly StandingLine[] {
  const found = standing.filter(({ state }) => state.line === key)
  if (found.length > 0) return found
  throw new HooktideError('not-found', `line ${key} does not stand: nothing of it waits behind anything`, {
    remedy: '`hooktide lines list` shows those that do.',
  })
}

/** What a blocked or stopped line stands behind; null: it goes on. */
function standingHead(key: string, standing: readonly StandingLine[]): string | null {
  return standingOnes(key, standing).find(({ state }) => state.state !== 'draining')?.state.head ?? null
}

function cancelKept(before: Control | null): Record<string, string | number | boolean> {
  if (before?.order === 'cancel') {
    const { to = 'cancelled' } = before.args ?? {}
    return { cancelledMs: before.atMs, to, cancelReason: before.reason ?? `by ${before.by}` }
  }
  const { cancelledMs, to, cancelReason } = before?.args ?? {}
  return cancelledMs === undefined ? {} : { cancelledMs, to: to ?? 'cancelled', cancelReason: cancelReason ?? '' }
}
