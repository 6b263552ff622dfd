import type { Dispatcher } from 'undici'
import { expect, test } from 'vitest'
import type { Reply } from '../../src/core/outcome.ts'
import type { Target } from '../../src/core/url-rules.ts'
import { Exchange } from '../../src/http/exchange.ts'

/** An exchange in a process whose timers do not get their turn. */
function stalled() {
  let nowMs = 0
  const replies: Reply[] = []
  const aborted: string[] = []
  const exchange = new Exchange({
    clock: { now: () => nowMs, mono: () => nowMs, after: () => () => {}, random: () => 0 },
    target: {} as Target,
    headers: [],
    body: Buffer.alloc(0),
    client: null,
    keptBytes: 4096,
    deadlineMs: 2_000,
    readTimeoutMs: 1_000,
    bodyTimeoutMs: 1_000,
    settled: (_, reply) => replies.push(reply),
  })
  let armed = 0
  let cut = 0
  exchange.line = { armed: () => armed++, unsent: () => false, free() {}, cut: () => cut++ }
  const controller = {
    // As undici does: the handler hears of it before this returns.
    abort(error: Error) {
      aborted.push(error.message)
      exchange.onResponseError(controller, error)
    },
  } as unknown as Dispatcher.DispatchController
  return {
    exchange,
    replies,
    aborted,
    start(atMs: number) {
      nowMs = atMs
      exchange.onRequestStart(controller)
      return { armed, cut }
    },
  }
}

test('a process that was stopped does not send, when it wakes, what it should have given up long ago', () => {
  const { start, replies, aborted } = stalled()
  expect(start(12_400)).toEqual({ armed: 0, cut: 1 })
  expect(aborted).toEqual(['not sent late'])
  // Nothing went out, so no attempt is spent.
  expect(replies).toEqual([{ t: 'interrupted', detail: 'own fault: not sent within 2000 ms', durationMs: 12_400 }])
})

test('within its deadline it is sent', () => {
  const { start, replies, aborted } = stalled()
  expect(start(1_999)).toEqual({ armed: 1, cut: 0 })
  expect({ replies, aborted }).toEqual({ replies: [], aborted: [] })
})
