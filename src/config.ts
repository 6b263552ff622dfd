import { readFileSync } from 'node:fs'
import { crossChecks } from './config/checks.ts'
import { type Env, envTree, type Layer, readTable, yamlTree } from './config/read.ts'
import { type Config, table } from './config/table.ts'
import { HooktideError, messageOf } from './core/error.ts'
import { type Problem, problemText } from './core/result.ts'

export { leaseMs } from './config/checks.ts'
export type { Config } from './config/table.ts'

export interface ConfigSource {
  /** Path of the YAML file, for messages and, without `text`, to read. */
  readonly path?: string
  readonly text?: string
  readonly env?: Env
  /** Wins over file and environment; in the shape of the file: `{ http: { allowHttp: true } }`. */
  readonly overrides?: object
}

export interface LoadedConfig {
  /** Deep-frozen. Holds references to secrets, never a secret: safe to print. */
  readonly config: Config
  /** Legal but rarely meant; log each at start. */
  readonly warnings: readonly string[]
}

/**
 * Defaults, then file, then environment, then overrides.
 * @throws HooktideError `config.invalid`, whose `details` are all problems at once: field, value, remedy.
 */
export function loadConfig(source: ConfigSource = {}): LoadedConfig {
  const problems: Problem[] = []
  const warnings: string[] = []
  const label = source.path ?? 'configuration'
  const layers: Layer[] = []
  const text = source.text ?? (source.path === undefined ? undefined : readText(source.path))
  if (text !== undefined) layers.push({ label, tree: yamlTree(text, label, problems) })
  if (source.env !== undefined)
    layers.push({ label: 'environment', tree: envTree(table, source.env, problems, warnings) })
  if (source.overrides !== undefined) layers.push({ label: 'overrides', tree: source.overrides })
  const values = readTable(table, layers, problems)
  // A value that is missing because it is wrong would only make the cross checks fail on top.
  if (problems.length === 0) {
    const found = crossChecks(values as unknown as Config)
    problems.push(...found.problems)
    warnings.push(...found.warnings)
  }
  if (problems.length > 0) {
    const count = problems.length === 1 ? 'one problem' : `${problems.length} problems`
    throw new HooktideError('config.invalid', `${label} has ${count}`, {
      details: problems.map(problemText),
      remedy: 'Correct every line named; config/hooktide.default.yaml explains each key.',
    })
  }
  return { config: deepFreeze(values as unknown as Config), warnings }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new HooktideError('config.invalid', `configuration file ${path} can not be read: ${messageOf(cause)}`, {
      cause,
      remedy: 'Give the path of a readable YAML file, or none to use the defaults.',
    })
  }
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const inner of Object.values(value)) deepFreeze(inner)
    Object.freeze(value)
  }
  return value
}
