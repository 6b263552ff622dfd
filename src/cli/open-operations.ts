import { readFile } from 'node:fs/promises'
import { HooktideError, messageOf } from '../core/error.ts'
import type { Operations } from '../operations/contract.ts'
import { ControlStore } from '../operations/control-store.ts'
import { directOperations } from '../operations/direct.ts'
import { topicNames } from '../operations/names.ts'
import { remoteOperations } from '../operations/remote.ts'
import { askInstances } from '../operations/status-read.ts'
import { SubscriptionStore } from '../operations/subscription-store.ts'
import type { CommandContext } from './context.ts'
import type { CliDeps } from './deps.ts'
import { operatorOf } from './operator.ts'
import { createProgress } from './progress.ts'

/** Options of every command. */
export interface GlobalOptions {
  readonly config?: string
  readonly apiUrl?: string
  readonly tokenRef?: string
}

/** Through the API where its URL is given, by option or `HOOKTIDE_URL`; else over Kafka. */
export async function openOperations<T>(
  context: CommandContext,
  options: GlobalOptions,
  run: (operations: Operations) => Promise<T>,
): Promise<T> {
  const { deps } = context
  const url = apiUrl(deps, options)
  if (url !== undefined) return run(remoteOperations(await api(deps, url, options.tokenRef)))
  return context.withCluster(async ({ kafka, admin }, config) => {
    const names = topicNames(config)
    const { clock, signal, secrets, endpoints } = deps
    // Its database is opened by the first question, and only where a delivery state is kept.
    const state = config.state.enabled ? deps.state(config) : null
    const parts = {
      ...{ config, clock, kafka, admin, secrets, endpoints, signal },
      subscriptions: new SubscriptionStore(kafka, names.subscriptions, clock),
      control: new ControlStore(kafka, names.control, clock),
      state: state?.store ?? null,
      progress: createProgress(deps.stderr, clock),
      patienceMs: null,
      fetchText: (page: string, timeoutMs: number) => deps.fetchText(page, timeoutMs),
    }
    try {
      return await run(directOperations(parts, { tenant: null, by: operatorOf(deps.env) }))
    } finally {
      await state?.close()
    }
  })
}

export function apiUrl({ env }: CliDeps, options: GlobalOptions): string | undefined {
  return options.apiUrl ?? (env.HOOKTIDE_URL || undefined)
}

async function api(deps: CliDeps, url: string, tokenRef: string | undefined) {
  const parsed = URL.parse(url)
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.username !== '' || parsed.search !== '') {
    throw new HooktideError('usage', '--api-url is no address of an API', {
      remedy: 'Write it as https://hooktide.example.com, without user, password or query.',
    })
  }
  const token = await tokenOf(deps, tokenRef)
  const base = parsed.href.replace(/\/$/, '')
  const fetchText = (page: string, timeoutMs: number) => deps.fetchText(page, timeoutMs)
  const inFlight = (urls: readonly string[]) => askInstances({ urls, fetchText })
  return { base, token, call: deps.callApi, by: operatorOf(deps.env), signal: deps.signal, inFlight }
}

async function tokenOf({ env }: CliDeps, ref: string | undefined): Promise<string | null> {
  if (ref === undefined) return env.HOOKTIDE_TOKEN || null
  const [, kind, rest = ''] = /^(env|file):(.+)$/s.exec(ref) ?? []
  if (kind === 'env' && env[rest]) return env[rest] ?? null
  if (kind === 'file') {
    try {
      return (await readFile(rest, 'utf8')).trim()
    } catch (cause) {
      throw new HooktideError('usage', `the token's file can not be read: ${messageOf(cause)}`, { cause })
    }
  }
  throw new HooktideError('usage', kind === 'env' ? `${rest} is not set in the environment` : 'that is no reference', {
    remedy: 'Write --token-ref env:NAME or file:PATH; never the token itself.',
  })
}
