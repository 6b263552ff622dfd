import { Orders } from '../../src/core/orders.ts'
import { LaneGate } from '../../src/pipeline/lane-gate.ts'
import { Settling } from '../../src/pipeline/lane-settling.ts'
import { over, type Plant } from './plant-tools.ts'

/** Mistakes about what operators order and subscriptions ask for. */
export const orderPlants: Readonly<Record<string, () => Plant>> = {
  /** A paused or throttled tier is promoted as ever. */
  'tier-pause-ignored': () => over(Orders.prototype, 'tierRate', () => () => null),

  /** What is cancelled is attempted once more. */
  'cancel-ignored': () => over(Orders.prototype, 'verdict', () => () => null),

  /** An order that comes while a body is fetched is seen only by the next attempt. */
  'order-during-fetch-missed': () =>
    over(
      LaneGate.prototype,
      'forbids',
      () =>
        function (this: LaneGate) {
          return false
        },
    ),

  /** `onDead: block` is taken for `continue`. */
  'dead-head-passed': () =>
    over(
      Settling.prototype,
      'lineEnd',
      (original) =>
        function (this: Settling, work, settlement) {
          const end = original.call(this, work, settlement)
          return end === 'stop' ? 'final' : end
        },
    ),

  /** What is held for a disabled subscription is dropped. */
  'held-is-dropped': () =>
    over(
      LaneGate.prototype,
      'drops',
      () =>
        function (this: LaneGate, { status }) {
          return status === 'disabled'
        },
    ),

  /** A line is let go by the first order about it that comes along. */
  'released-by-anything': () => over(Orders.prototype, 'released', () => () => true),

  /** The router does not look at filters. */
  'filter-ignored': () => withoutField('filter'),

  /** The event's own body is sent, whatever the subscription asks for. */
  'transformation-left-out': () => withoutField('transform'),
}

function withoutField(name: 'filter' | 'transform'): Plant {
  return {
    mistake: {
      deps: (deps) => ({
        ...deps,
        decodeSubscription: (record) => {
          const decoded = deps.decodeSubscription(record)
          if (!decoded.ok) return decoded
          const { [name]: _, ...rest } = decoded.value
          return { ...decoded, value: rest }
        },
      }),
    },
    undo() {},
  }
}
