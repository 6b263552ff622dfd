import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import { stringify } from 'yaml'
import { eachField } from '../config/read.ts'
import { table } from '../config/table.ts'
import { formatDuration } from '../config/units.ts'
import { type Config, loadConfig } from '../config.ts'
import type { Tier } from '../core/ladder.ts'
import type { CommandContext } from './context.ts'

const defaultsFile = join(import.meta.dirname, '..', '..', 'config', 'hooktide.default.yaml')

/** `hooktide config show`: what is in force, as a file that would bring it about. */
export function configCommand({ load, print, printJson, note }: CommandContext): Command {
  const config = new Command('config').description('Look at the configuration').addHelpText('after', examples)
  config
    .command('show')
    .description('print the configuration in force (file, environment, defaults); it holds references, no secrets')
    .option('--defaults', 'print the annotated default file instead: every key, explained')
    .option('--json', 'print JSON')
    .addHelpText('after', examples)
    .action(({ defaults = false, json = false }: { defaults?: boolean; json?: boolean }) => {
      if (defaults && !json) return print(readFileSync(defaultsFile, 'utf8').trimEnd())
      if (defaults) return printJson({ config: configTree(loadConfig().config), warnings: [] })
      const { config, warnings } = load()
      if (json) return printJson({ config: configTree(config), warnings })
      for (const warning of warnings) note(`warning: ${warning}`)
      print(stringify(configTree(config)).trimEnd())
    })
  return config
}

/** A configuration in the shape and the units of its file. */
export function configTree(config: Config): Record<string, unknown> {
  const tree: Record<string, unknown> = {}
  eachField(table, (keys, field) => {
    const last = keys.at(-1) as string
    let from: unknown = config
    let to = tree
    for (const key of keys.slice(0, -1)) {
      from = (from as Record<string, unknown>)[key]
      to[key] ??= {}
      to = to[key] as Record<string, unknown>
    }
    const value = (from as Record<string, unknown>)[field.duration ? `${last}Ms` : last]
    if (field.duration) to[last] = formatDuration(value as number)
    else if (keys.join('.') === 'topics.tiers') to[last] = (value as readonly Tier[]).map(tierTree)
    else to[last] = value
  })
  return tree
}

function tierTree({ name, delayMs }: Tier): { name: string; delay: string } {
  return { name, delay: formatDuration(delayMs) }
}

const examples = `
Examples:
  hooktide config show                        what is in force here
  hooktide config show --defaults > hooktide.yaml
  KAFKA_BROKERS=kafka-1:9092 hooktide config show --json
Exit codes: 0 all right, 1 it failed, 2 wrong input: here also a configuration with problems (all are printed)`
