import { Command } from 'commander'
import { HooktideError } from '../core/error.ts'
import type { OutRecord } from '../core/record.ts'
import { claimEvent } from '../operations/claim-event.ts'
import { type EventOptions, eventRecord } from '../operations/produce-event.ts'
import type { CommandContext } from './context.ts'
import { exitCode } from './exit-code.ts'
import { countArgument, rateArgument } from './options.ts'
import { PacedSender } from './paced-sender.ts'
import { createProgress } from './progress.ts'
import { readBytes, readChunks, readLines } from './read-text.ts'
import { plural } from './text.ts'

interface Options {
  readonly topic?: string
  readonly type?: string
  readonly id?: string
  readonly tenant?: string
  readonly key?: string
  readonly contentType?: string
  readonly typeFrom?: string
  readonly idFrom?: string
  readonly keyFrom?: string
  readonly data?: string
  readonly empty?: boolean
  readonly ndjson?: boolean
  readonly count?: number
  readonly rate?: number
  readonly json?: boolean
}

/** `hooktide produce`: events into the events topic, for trying out and for load. */
export function produceCommand(context: CommandContext): Command {
  const { deps, print, printJson } = context
  return new Command('produce')
    .description('Write events to the events topic')
    .argument('[file]', 'the body; - or nothing: stdin')
    .option('--data <text>', 'the body, instead of a file')
    .option('--empty', 'an event without a body, on purpose')
    .option('--ndjson', 'one event per line')
    .option('--type <type>', 'event type; without it the body must be an envelope with "type"')
    .option('--id <id>', 'event id; repeated events get -1, -2, … behind it')
    .option('--tenant <tenant>', 'tenant (default: default)')
    .option('--key <key>', 'ordering key')
    .option('--content-type <type>', 'content type of the body (default: application/json)')
    .option('--type-from <field>', 'take the type from a field of the JSON body, e.g. action')
    .option('--id-from <field>', 'take the id from a field, e.g. delivery.id')
    .option('--key-from <field>', 'take the ordering key from a field, e.g. repository.full_name')
    .option('--topic <topic>', 'events topic (default: the first of topics.events)')
    .option('--count <n>', 'write it n times; with --ndjson, the lines over and over until n', countArgument(1, 1e9))
    .option('--rate <perSecond>', 'events per second', rateArgument)
    .option('--json', 'print JSON')
    .addHelpText('after', examples)
    .action(async (file: string | undefined, options: Options) => {
      check(file, options)
      if (options.data === undefined && options.empty !== true && (file ?? '-') === '-' && deps.stdin.isTTY === true)
        context.note('Reading from the keyboard; end with Ctrl-D.')
      await context.withOperations(async (ops) => {
        const target = await ops.events.open(options.topic ?? null)
        const { topic, partitions: count, limits } = target
        const event: EventOptions = { ...options, topic, partitions: count, limits }
        const { maxLargeBytes } = target
        const progress = createProgress(deps.stderr, deps.clock)
        const sender = new PacedSender(target, deps.clock, options.rate ?? null, progress, deps.signal)
        try {
          await sendAll(sender, events(context, file, options, event, maxLargeBytes))
        } finally {
          progress.end()
          await target.close()
        }
        const { sent, elapsedMs, ranges } = sender
        if (sent === 0 && !deps.signal.aborted) throw noEvents(file, options)
        const perSecond = Math.round((sent * 1000) / Math.max(1, elapsedMs))
        const partitions = ranges.map(({ partition, first, count }) => ({ partition, firstOffset: first, count }))
        if (options.json === true)
          printJson({ topic, events: sent, elapsedMs: Math.round(elapsedMs), perSecond, partitions })
        else {
          for (const { partition, first, last, count } of ranges) {
            print(`${topic}/${partition} offset ${first}${count > 1 ? ` to ${last} (${plural(count, 'event')})` : ''}`)
          }
          if (sent !== 1) print(`${plural(sent, 'event')} in ${(elapsedMs / 1000).toFixed(1)} s (${perSecond}/s)`)
        }
        if (sent === 0) deps.setExitCode(exitCode.failed)
      })
    })
}

function check(file: string | undefined, options: Options): void {
  const refuse = (message: string) => {
    throw new HooktideError('usage', message, { remedy: 'See `hooktide produce --help`.' })
  }
  if (file !== undefined && options.data !== undefined) refuse('--data and a file were both given')
  if (options.empty === true && (file ?? options.data ?? options.ndjson) !== undefined)
    refuse('--empty and a body were both given')
  if (options.type !== undefined && options.typeFrom !== undefined) refuse('--type and --type-from were both given')
  if (options.key !== undefined && options.keyFrom !== undefined) refuse('--key and --key-from were both given')
  if (options.id !== undefined && options.idFrom !== undefined) refuse('--id and --id-from were both given')
}

/** Records one after another; made when they are asked for, so that a file of any size and any count fit in memory. */
async function* events(
  { deps, load }: CommandContext,
  file: string | undefined,
  options: Options,
  event: EventOptions,
  maxLargeBytes: number | null,
): AsyncGenerator<OutRecord> {
  const count = options.count ?? null
  if (options.ndjson !== true) {
    const given = options.empty === true ? '' : options.data
    const body = given === undefined ? await readBytes(deps, file ?? '-') : Buffer.from(given)
    if (body.length === 0 && options.empty !== true) throw noBody(file, options)
    const total = count ?? 1
    const isLarge = body.length > event.limits.maxBytes
    const objects = isLarge && maxLargeBytes === null ? deps.objects(load().config) : null
    const maxBytes = objects === null ? Math.max(event.limits.maxBytes, maxLargeBytes ?? 0) : body.length
    const large = { ...event, limits: { ...event.limits, maxBytes } }
    for (let n = 0; n < total; n++) {
      const record = eventRecord(body, large, n, total > 1, 'the event')
      yield objects === null ? record : await claimEvent(record, body, objects, deps.clock.now())
    }
    return
  }
  const chunks = options.data === undefined ? readChunks(deps, file ?? '-') : oneChunk(options.data)
  // Lines are only kept when they may be needed again.
  const kept: Buffer[] = []
  let n = 0
  for await (const { number, line } of readLines(chunks)) {
    if (count !== null && n >= count) return
    if (count !== null) kept.push(line)
    yield eventRecord(line, event, n++, options.id !== undefined, `line ${number}`)
  }
  while (count !== null && kept.length > 0 && n < count) {
    const line = kept[n % kept.length] as Buffer
    yield eventRecord(line, event, n++, true, 'a line')
  }
}

function nameOf(file: string | undefined, { data }: Options): string {
  return data !== undefined ? '--data' : file === undefined || file === '-' ? 'stdin' : file
}

/** A pipe whose first command failed looks like this: an event that nobody meant would go out to every subscription. */
function noBody(file: string | undefined, options: Options): HooktideError {
  return new HooktideError('usage', `${nameOf(file, options)} is empty: nothing was written`, {
    remedy: 'Give --empty for an event without a body.',
  })
}

function noEvents(file: string | undefined, options: Options): HooktideError {
  return new HooktideError('usage', `0 events: ${nameOf(file, options)} holds no line`, {
    remedy: 'Write one event per line.',
  })
}

async function* oneChunk(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text)
}

async function sendAll(sender: PacedSender, records: AsyncIterable<OutRecord>): Promise<void> {
  try {
    for await (const record of records) if (!(await sender.add(record))) break
  } catch (error) {
    if (!(error instanceof HooktideError) || error.code !== 'usage') throw error
    // A bad line ends it there: all before it are written, so that whoever corrects it knows where to go on.
    await sender.flush()
    const details = [
      ...error.details,
      `${plural(sender.sent, 'event')} before it ${sender.sent === 1 ? 'was' : 'were'} written`,
    ]
    throw new HooktideError('usage', error.message, {
      cause: error,
      details: sender.sent === 0 ? error.details : details,
      ...(error.remedy === undefined ? {} : { remedy: error.remedy }),
    })
  }
  await sender.flush()
}

const examples = `
Examples:
  hooktide produce --type order.created --key o-1 --data '{"id":"o-1"}'
  hooktide produce --type push --key-from repository.full_name payload.json
  hooktide produce --ndjson --type-from kind events.ndjson
  hooktide produce --type report.made report.json         larger than a record: into the object store, if there is one
  hooktide produce --type ping --data '{}' --count 10000 --rate 500
  hooktide produce --type ping --empty                     an event without a body
Exit codes: 0 written and acknowledged, 1 it failed or was ended before anything was written, 2 wrong input`
