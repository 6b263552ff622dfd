import { hostname } from 'node:os'
import type { Env } from './deps.ts'

/** Who gives an order, unless --by says: the user of this shell on this machine. */
export function operatorOf(env: Env): string {
  return `${env.USER || env.LOGNAME || env.USERNAME || 'unknown'}@${hostname()}`.slice(0, 200)
}
