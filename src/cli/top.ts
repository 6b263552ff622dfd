import { Command } from 'commander'
import { HooktideError, messageOf } from '../core/error.ts'
import { sleep } from '../operations/sleep.ts'
import type { CommandContext } from './context.ts'
import { durationArgument, listArgument } from './options.ts'
import { ratesBetween, sampleOfPages, sampleOfStatus, type TopSample } from './top-sample.ts'
import { topText } from './top-view.ts'

interface Options {
  readonly url?: readonly string[]
  readonly every: number
  readonly once?: boolean
  readonly json?: boolean
}

/** `hooktide top`: the vital signs, live. */
export function topCommand(context: CommandContext): Command {
  const { deps, print } = context
  return new Command('top')
    .description('Vital signs, lanes, tiers and the worst subscriptions, live; changes nothing')
    .option('--url <url>', "an instance's /metrics (repeat for several); without any, Kafka is asked", listArgument)
    .option('--every <duration>', 'how often', durationArgument, 1_000)
    .option('--once', 'print once, with rates over one interval, and end; as it is where there is no terminal')
    .option('--json', 'print once, as JSON')
    .addHelpText('after', examples)
    .action(async (options: Options) => {
      const run = async (take: () => Promise<TopSample>) => {
        if (options.once === true || options.json === true || !deps.stdout.isTTY) await once(take, options)
        else await live(take, options)
      }
      const { url: urls } = options
      if (urls === undefined)
        await context.withOperations((ops) => run(async () => sampleOfStatus(await ops.status([]))))
      else await run(() => askAll(urls))
    })

  async function askAll(urls: readonly string[]): Promise<TopSample> {
    const pages = await Promise.all(
      urls.map(async (url) => {
        try {
          return { url, text: await deps.fetchText(url, answerMs), error: null }
        } catch (error) {
          return { url, text: null, error: messageOf(error) }
        }
      }),
    )
    if (pages.every(({ text }) => text === null)) {
      throw new HooktideError('not-found', 'no instance answers', {
        details: pages.map(({ url, error }) => `${url}: ${error}`),
        remedy: 'Give the address of /metrics (observe.host, observe.port), or no --url to ask Kafka.',
      })
    }
    return sampleOfPages(pages, deps.clock.now())
  }

  async function once(take: () => Promise<TopSample>, options: Options): Promise<void> {
    const before = await take()
    await sleep(deps.clock, options.every, deps.signal)
    const now = await take()
    if (options.json !== true) return print(topText(before, now))
    const { counters, lanes } = ratesBetween(before, now)
    context.printJson({ ...now, perSecond: { counters, lanes: Object.fromEntries(lanes) } })
  }

  /** On a screen of its own, so that what was there before is there again afterwards. */
  async function live(take: () => Promise<TopSample>, options: Options): Promise<void> {
    let before: TopSample | null = null
    let lost: string | null = null
    deps.stdout.write('\u001b[?1049h')
    try {
      while (!deps.signal.aborted) {
        try {
          const now: TopSample = await take()
          deps.stdout.write(`\u001b[2J\u001b[H${topText(before, now)}\n`)
          before = now
          lost = null
        } catch (error) {
          // The first look must succeed; afterwards an outage is what somebody is watching.
          if (before === null) throw error
          lost ??= messageOf(error)
          deps.stdout.write(
            `\u001b[2J\u001b[HNO ANSWER: ${lost}\nThe last that was seen:\n\n${topText(null, before)}\n`,
          )
        }
        await sleep(deps.clock, options.every, deps.signal)
      }
    } finally {
      deps.stdout.write('\u001b[?1049l')
    }
  }
}

const answerMs = 3_000

const examples = `
Examples:
  hooktide top                                              what Kafka says, each second
  hooktide top --url http://10.0.0.1:9400/metrics --url http://10.0.0.2:9400/metrics
  hooktide top --once --url http://127.0.0.1:9400/metrics
  hooktide top --json | jq '.lanes[] | select(.backlog > 0)'
Exit codes: 0 shown, 1 nobody answers, 2 wrong input`
