import type { Accesses } from '../../src/ports.ts'

/** Endpoints that ask for nothing but the signature. */
export const openAccess: Accesses = {
  of: () => ({ t: 'ready', access: null }),
  refused: () => false,
  accepted: () => undefined,
  onChange: () => undefined,
}
