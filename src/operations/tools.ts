import type { Config } from '../config.ts'
import type { EndpointCheck } from '../core/endpoint-check.ts'
import type { InRecord } from '../core/record.ts'
import type { Result } from '../core/result.ts'
import type { MasterKey, MasterKeys, SealedSecret, SecretPlain } from '../core/sealed-secret.ts'
import type { Secret } from '../core/secret.ts'
import type { Subscription } from '../core/subscription.ts'

/** `key`: it must hold a signing secret; `text`: anything. */
export type ResolveSecret = (ref: string, as?: 'key' | 'text') => Result<unknown>

/** What operations need to know of secrets without seeing how they are kept. */
export interface SecretTools {
  /** The keys behind `secrets.masterKeyRef`. */
  masterKeys(config: Config): Result<MasterKeys>
  newSigningSecret(): Secret
  seal(plain: SecretPlain, master: MasterKey): SealedSecret
  /** Says of a reference whether it can be resolved here; `sealed` are the records of the `secrets` topic, in log order. */
  resolver(config: Config, sealed: Iterable<Pick<InRecord, 'key' | 'value'>>): ResolveSecret
}

/** What operations need to know of endpoints: the service's own rules and ways, asked once. */
export interface EndpointTools {
  /** `connect`: what a connection comes to, too; nothing is sent over it. Never rejects for what is wrong with the endpoint. */
  check(config: Config, url: string, options?: { readonly connect?: boolean }): Promise<EndpointCheck>
  /** POSTs a signed challenge; null when it came back, else why not. `sealed` as for `SecretTools.resolver`. */
  challenge(
    config: Config,
    subscription: Subscription,
    sealed: Iterable<Pick<InRecord, 'key' | 'value'>>,
  ): Promise<string | null>
}
