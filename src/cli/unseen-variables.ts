import type { CliDeps } from './deps.ts'

/**
 * A line about `env:` references that this process can't resolve; null: there are none. No error: whoever writes subscriptions need
 * not be whoever signs. But a name that is misspelt would otherwise be noticed by the first delivery that does not arrive.
 */
export function unseenVariables(written: unknown, env: CliDeps['env']): string | null {
  const names = [...new Set(variables(written))].filter((name) => !Object.hasOwn(env, name) || env[name] === '')
  if (names.length === 0) return null
  const refs = names.map((name) => `env:${name}`).join(', ')
  return `hint: ${refs}: not set for this process. Every deliverer must have ${names.length === 1 ? 'it' : 'them'}, or nothing is sent there.`
}

/** Names behind `ref: env:NAME` and `…Ref: env:NAME`, wherever in it they stand. */
function variables(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    if (typeof inner !== 'string') return variables(inner)
    return /(^ref|Ref)$/.test(key) && inner.startsWith('env:') ? [inner.slice('env:'.length)] : []
  })
}
