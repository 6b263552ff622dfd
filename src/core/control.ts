export type ControlKind = 'tier' | 'subscription' | 'delivery' | 'line' | 'job'

export type ControlOrder = 'pause' | 'resume' | 'throttle' | 'cancel' | 'redrive' | 'replay'

/** The value of a `control` record (schemas/control.json, version 1): an operator's order. The last one of a key counts. */
export interface Control {
  readonly v: 1
  readonly kind: ControlKind
  /** Tier name, subscription id, delivery id, line or job id. */
  readonly target: string
  readonly order: ControlOrder
  /** Who gave the order: user, service or command, for the audit. */
  readonly by: string
  readonly atMs: number
  /** `throttle`: most attempts per second. */
  readonly perSecond?: number
  /** The order ends by itself (epoch ms). */
  readonly untilMs?: number
  readonly reason?: string
  /** What a job needs besides; flat, so that every version can show it. */
  readonly args?: Readonly<Record<string, string | number | boolean>>
}

export function controlKey(control: Pick<Control, 'kind' | 'target'>): string {
  return `${control.kind}:${control.target}`
}
