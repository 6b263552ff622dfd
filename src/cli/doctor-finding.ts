import { HooktideError, messageOf } from '../core/error.ts'

export interface Finding {
  /** What was looked at: `broker`, `topics`, `clock`, `secrets`, … */
  readonly check: string
  readonly state: 'ok' | 'warn' | 'fail'
  readonly message: string
  /** What to do; '' where nothing is to be done. */
  readonly remedy: string
}

export type Found = Omit<Finding, 'check'>

export const good = (message: string): Found => ({ state: 'ok', message, remedy: '' })
export const warn = (message: string, remedy: string): Found => ({ state: 'warn', message, remedy })
export const bad = (message: string, remedy: string): Found => ({ state: 'fail', message, remedy })

/** A check that could not be made is a failed one, with the reason: it never hides the others. */
export async function checked(check: string, run: () => Promise<readonly Found[]>): Promise<readonly Finding[]> {
  try {
    return (await run()).map((found) => ({ check, ...found }))
  } catch (error) {
    const known = error instanceof HooktideError
    const details = known && error.details.length > 0 ? `: ${error.details.join('; ')}` : ''
    const remedy = known ? (error.remedy ?? '') : 'Run it again with --debug and report what it prints.'
    return [{ check, state: 'fail', message: messageOf(error) + details, remedy }]
  }
}
