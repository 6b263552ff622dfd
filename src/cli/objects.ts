import { Command } from 'commander'
import { HooktideError } from '../core/error.ts'
import { cleanObjects } from '../operations/objects-clean.ts'
import type { CommandContext } from './context.ts'
import { durationArgument } from './options.ts'
import { plural } from './text.ts'

interface CleanOptions {
  readonly olderThan?: number | null
  readonly dryRun?: boolean
  readonly json?: boolean
}

/** `hooktide objects clean`: bodies in the object store that nothing points to any more. */
export function objectsCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  const objects = new Command('objects').description('The object store of large bodies: clean')
  objects.addHelpText('after', examples)
  objects
    .command('clean')
    .description('remove the days of stored bodies that no record points to any more')
    .option('--older-than <duration>', 'how old (default: as long as the topics can keep a record)', durationArgument)
    .option('--dry-run', 'only say what would go')
    .option('--json', 'print JSON')
    .addHelpText('after', examples)
    .action(async ({ olderThan = null, dryRun = false, json = false }: CleanOptions) => {
      const { config } = context.load()
      const store = deps.objects(config)
      if (store === null) {
        throw new HooktideError('usage', 'no object store is configured', {
          remedy: 'Set objects.directory or objects.s3.bucket.',
        })
      }
      const cleaned = await context.withCluster(({ admin }) =>
        cleanObjects({ admin, config, objects: store, nowMs: deps.clock.now() }, { olderThanMs: olderThan, dryRun }),
      )
      if (json) printJson({ ...cleaned, dryRun })
      else {
        const { days, beforeDay, warning } = cleaned
        print(`${dryRun ? 'would remove' : 'removed'} ${plural(days.length, 'day')} before ${beforeDay}`)
        for (const day of days) print(`  ${day}`)
        if (warning !== null) context.note(warning)
      }
    })
  return objects
}

const examples = `
Examples:
  hooktide objects clean --dry-run
  hooktide objects clean --older-than 120d --json
Only keys that begin with a day (2026-12-01/…) are looked at: what producers store under other keys is theirs. What is
sent again from the dead letters or replayed points to the body of its day: clean later than you may want to do that.
Exit codes: 0 done, 1 it failed, 2 wrong input`
