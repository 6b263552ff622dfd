import { messageOf } from '../core/error.ts'
import type { Clock, GroupHandlers, Observer } from '../ports.ts'
import type { GroupTimes } from './group-member.ts'
import type { Wakeup } from './group-watchdog.ts'

/**
 * Longest drain the coordinator will wait for, from the moment we hear of the rebalance: it may be a heartbeat old by
 * then, and joining must fit in as well.
 */
export function drainBoundMs(drainMs: number, times: GroupTimes): number {
  return Math.max(0, Math.min(drainMs, times.sessionMs - 2000, times.rebalanceMs - times.heartbeatMs - 2000))
}

export interface DrainDeps {
  readonly clock: Clock
  readonly observer: Observer
  readonly group: string
  readonly wakeup: Wakeup
  /** One heartbeat; never rejects. False: membership is gone, beating is pointless. */
  beat(): Promise<boolean>
  /** The consumer is being stopped: its caller has drained already. */
  ended(): boolean
}

/**
 * Awaits the pipeline's drain, but not longer than `boundMs`: who is late is fenced by its transactions and by the
 * generation, while a member that does not join in time costs the whole group another rebalance. Heartbeats go on
 * meanwhile, so the session does not run out. Never rejects.
 */
export async function drain(
  handlers: GroupHandlers,
  deps: DrainDeps,
  info: { readonly boundMs: number; readonly heartbeatMs: number; readonly lost: boolean },
): Promise<void> {
  const { clock, observer, group, wakeup } = deps
  const { boundMs, lost } = info
  const begunMono = clock.mono()
  let how: 'done' | 'late' | undefined
  const end = (outcome: 'done' | 'late') => {
    how ??= outcome
    wakeup.fire()
  }
  const cancel = clock.after(boundMs, () => end('late'))
  invoke(() => handlers.onRevoking({ deadlineMs: begunMono + boundMs, lost })).then(
    () => end('done'),
    (error: unknown) => {
      observer.log('error', 'consumer.drain_failed', { group, reason: messageOf(error) })
      end('done')
    },
  )
  const isOver = () => how !== undefined || deps.ended()
  let member = !lost
  while (!isOver()) {
    await wakeup.wait(info.heartbeatMs)
    if (!isOver() && member) member = await deps.beat()
  }
  cancel()
  const ms = clock.mono() - begunMono
  observer.time('consumer_drain_ms', ms, { group })
  if (how === 'late') observer.log('warn', 'consumer.drain_timeout', { group, ms: Math.round(ms), lost })
}

/** A synchronous throw counts as a rejection. */
async function invoke(call: () => Promise<void>): Promise<void> {
  await call()
}
