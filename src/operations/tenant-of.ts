import { HooktideError } from '../core/error.ts'
import type { Caller } from './contract.ts'

/** Whose the answer is to be: who is bound to a tenant may name no other. Undefined: everybody's. */
export function tenantOf({ tenant }: Caller, wanted: string | undefined): string | undefined {
  if (tenant === null || wanted === undefined || wanted === tenant) return tenant ?? wanted
  throw new HooktideError('forbidden', `this caller is bound to tenant ${tenant}`, {
    problems: [{ field: 'tenant', value: '', message: 'is not yours', remedy: 'leave it out' }],
  })
}
