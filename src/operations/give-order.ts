import type { Control } from '../core/control.ts'
import type { Caller } from './contract.ts'
import type { OrderInput } from './order-input.ts'

/** An order, signed and dated. */
export function orderOf(
  nowMs: number,
  caller: Caller,
  order: Pick<Control, 'kind' | 'target' | 'order'> & Partial<Control>,
  { by, reason, forMs }: OrderInput,
): Control {
  const atMs = Math.floor(nowMs)
  return {
    ...order,
    v: 1,
    by: signature(caller, by),
    atMs,
    ...(forMs === undefined ? {} : { untilMs: atMs + forMs }),
    ...(reason === undefined ? {} : { reason }),
  }
}

/** What somebody calls themselves never hides who they are. */
function signature(caller: Caller, by: string | undefined): string {
  if (by === undefined || by === caller.by) return caller.by.slice(0, 200)
  return caller.named === true ? `${by.slice(0, 120)} (${caller.by})`.slice(0, 200) : by.slice(0, 200)
}
