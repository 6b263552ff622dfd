import { type Command, InvalidArgumentError } from 'commander'
import type { Control } from '../core/control.ts'
import { durationArgument } from './options.ts'
import { ago, time } from './text.ts'

export interface OrderOptions {
  readonly by?: string
  readonly reason?: string
  readonly json?: boolean
}

/** What every command that gives an order takes. */
export function withOrderOptions(command: Command): Command {
  return command
    .option('--reason <text>', 'why, for whoever looks later', textArgument(1000))
    .option('--by <who>', 'who gives the order (default: user@host)', textArgument(200))
    .option('--json', 'print JSON')
}

export function withDuration(command: Command): Command {
  return command.option('--for <duration>', 'ends by itself after this: 10m, 2h', durationArgument)
}

/** `paused by ada@host, for another 9m58s: broker upgrade`. */
export function orderText(order: Control, nowMs: number): string {
  const what = {
    pause: 'paused',
    resume: 'let go on',
    throttle: `throttled to ${order.perSecond}/s`,
    cancel: order.args?.to === 'dead' ? 'sent to the dead letters' : 'cancelled',
    redrive: 'redriven',
    replay: 'replayed',
  }[order.order]
  const left = order.untilMs === undefined ? '' : `, for another ${ago(Math.max(0, order.untilMs - nowMs))}`
  const reason = order.reason === undefined ? '' : `: ${order.reason}`
  return `${what} by ${order.by} at ${time(order.atMs)}${left}${reason}`
}

function textArgument(most: number): (text: string) => string {
  return (text) => {
    if (text !== '' && text.length <= most) return text
    throw new InvalidArgumentError(`Write some text, ${most} characters at most.`)
  }
}
