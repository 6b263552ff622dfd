import type { Tier } from './ladder.ts'
import type { Problem } from './result.ts'
import { suggest } from './suggest.ts'
import { type TopicSpec, type TopicUse, topicUses } from './topic-spec.ts'
import { topicValue } from './topic-value.ts'

/** A file of `topics/`, its YAML already read. */
export interface TopicFile {
  readonly file: string
  readonly content: unknown
}

/** The part of the configuration that shapes the topics. */
export interface TopicSettings {
  readonly prefix: string
  /** Whole names of the events topics. */
  readonly events: readonly string[]
  /** Partitions of every lane topic. */
  readonly lanes: number
  /** Names without the prefix. */
  readonly tiers: readonly Tier[]
  /** Copies; null: min(3, brokers). */
  readonly replication: number | null
}

const dayMs = 86_400_000
const fields = ['name', 'key', 'partitions', 'config']
/** A record must survive its wait and an outage of our own of this length. */
export const outageMs = 3 * dayMs

export function leastTierRetentionMs(delayMs: number): number {
  return 3 * delayMs + outageMs
}

/** Specs of all topics out of the topic files and the configuration, or everything that is wrong with the files. */
export function topicSpecs(
  files: readonly TopicFile[],
  settings: TopicSettings,
): { readonly specs: readonly TopicSpec[]; readonly problems: readonly Problem[] } {
  const problems: Problem[] = []
  const specs: TopicSpec[] = []
  const seen = new Map<string, string>()
  for (const { file, content } of files) {
    const reader = new FileReader(file, problems)
    const read = reader.read(content)
    if (read === null) continue
    const other = seen.get(read.name)
    if (other !== undefined) reader.problem('name', read.name, `is in ${other} already`, 'keep one of the files')
    seen.set(read.name, file)
    for (const { name, delayMs } of instances(read.name, settings)) {
      const configs = reader.configs(read.config, read.name, delayMs)
      const lanes = read.partitions === 'lanes'
      const growth = read.name === '{events}' ? 'any' : read.use.key === 'none' ? 'grow' : 'never'
      const partitions = lanes ? settings.lanes : (read.partitions as number)
      specs.push({ name, role: read.name, partitions, growth, replication: settings.replication, configs })
    }
  }
  // A file that can't be read may be the missing one: no second complaint then.
  if (problems.length === 0) {
    for (const name of Object.keys(topicUses)) {
      if (seen.has(name)) continue
      problems.push({ field: name, value: '', message: 'has no topic file', remedy: 'put the file back' })
    }
  }
  return { specs, problems }
}

function instances(name: string, settings: TopicSettings): { name: string; delayMs: number | null }[] {
  if (name === '{events}') return settings.events.map((event) => ({ name: event, delayMs: null }))
  if (name !== '{tier}') return [{ name: settings.prefix + name, delayMs: null }]
  return settings.tiers.map((tier) => ({ name: settings.prefix + tier.name, delayMs: tier.delayMs }))
}

interface ReadFile {
  readonly name: string
  readonly use: TopicUse
  readonly partitions: number | 'lanes'
  readonly config: Readonly<Record<string, unknown>>
}

class FileReader {
  readonly #file: string
  readonly #problems: Problem[]

  constructor(file: string, problems: Problem[]) {
    this.#file = file
    this.#problems = problems
  }

  problem(field: string, value: unknown, message: string, remedy: string): void {
    const shown = value === undefined ? '' : (JSON.stringify(value) ?? '').slice(0, 60)
    const problem = { field: `${this.#file}: ${field}`, value: shown, message, remedy }
    // A template is read once per topic; what is wrong for all is said once.
    if (!this.#problems.some((p) => p.field === problem.field && p.message === message)) this.#problems.push(problem)
  }

  read(content: unknown): ReadFile | null {
    if (!isMap(content)) {
      this.problem('', undefined, 'is not a map', `write ${fields.join(', ')}`)
      return null
    }
    for (const field of Object.keys(content)) {
      if (fields.includes(field)) continue
      const near = suggest(field, fields)
      this.problem(
        field,
        undefined,
        'is no field of a topic',
        near === null ? `use ${fields.join(', ')}` : `write ${near}`,
      )
    }
    const { name, key, partitions, config = {} } = content
    const use = typeof name === 'string' ? topicUses[name] : undefined
    if (typeof name !== 'string' || use === undefined) {
      const near = typeof name === 'string' ? suggest(name, Object.keys(topicUses)) : null
      const remedy = near === null ? `use one of ${Object.keys(topicUses).join(', ')}` : `write "${near}"`
      this.problem('name', name, 'is no topic of Hooktide', remedy)
      return null
    }
    if (key !== use.key) this.problem('key', key, 'is not what the program writes', `write "${use.key}"`)
    if (!isMap(config)) {
      this.problem('config', config, 'is not a map', 'write settings with their values')
      return null
    }
    if (use.lanes !== (partitions === 'lanes') || (!use.lanes && !isCount(partitions))) {
      const remedy = use.lanes ? 'write lanes: it has one partition per lane' : 'write a number from 1 to 1000'
      this.problem('partitions', partitions, use.lanes ? 'is not lanes' : 'is not a number of partitions', remedy)
      return null
    }
    return { name, use, partitions: partitions as number | 'lanes', config }
  }

  configs(written: Readonly<Record<string, unknown>>, name: string, delayMs: number | null): Record<string, string> {
    const configs: Record<string, string> = {}
    for (const [key, value] of Object.entries(written)) {
      const text = topicValue(key, value, delayMs)
      if (text === null) {
        const units = key.endsWith('.ms')
          ? ' or a duration (90s, 7d)'
          : key.endsWith('.bytes')
            ? ' or a size (16MiB)'
            : ''
        this.problem(`config.${key}`, value, 'can not be read', `write a word or a number${units}`)
      } else configs[key] = text
    }
    this.#check(configs, topicUses[name] as TopicUse, delayMs)
    return configs
  }

  #check(configs: Readonly<Record<string, string>>, use: TopicUse, delayMs: number | null): void {
    const must = (key: string, wanted: string, reason: string) => {
      if (configs[key] !== wanted) this.problem(`config.${key}`, configs[key], reason, `write ${wanted}`)
    }
    if (use.compact) must('cleanup.policy', 'compact', 'would lose the latest record of a key')
    else must('cleanup.policy', 'delete', 'would lose records of one key but the last')
    if (!use.holdsWork) return
    must('retention.bytes', '-1', 'would delete deliveries that have not been made')
    const least = delayMs === null ? outageMs : leastTierRetentionMs(delayMs)
    const retention = Number(configs['retention.ms'] ?? Number.NaN)
    if (!(retention === -1 || retention >= least)) {
      const remedy = delayMs === null ? 'write 3d or more' : 'write 3 * delay + 3d or more'
      this.problem(
        'config.retention.ms',
        configs['retention.ms'],
        'would delete deliveries that have not been made',
        remedy,
      )
    }
    if (delayMs !== null) {
      must('message.timestamp.type', 'LogAppendTime', 'is needed: a tier ripens by the time of its append')
    }
  }
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 1000
}
