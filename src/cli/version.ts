import { Command } from 'commander'
import manifest from '../../package.json' with { type: 'json' }
import type { CommandContext } from './context.ts'

export const version = manifest.version

export function versionCommand({ deps, print, printJson }: CommandContext): Command {
  return new Command('version')
    .description('Print the version of Hooktide and of what it runs on')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  hooktide version\n  hooktide version --json\nExit codes: 0 printed, 2 wrong input',
    )
    .action(({ json = false }: { json?: boolean }) => {
      const { node, platform } = deps.runtime
      if (json) printJson({ hooktide: version, node, platform })
      else print(`hooktide ${version} (Node ${node}, ${platform})`)
    })
}
