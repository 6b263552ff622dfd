import { parseArgs } from 'node:util'

export interface Options {
  readonly scenarios: readonly string[]
  readonly rounds: number
  readonly concurrency: number
  readonly deliveries: number | undefined
  readonly json: boolean
  /** Hold the ratios to those of bench/baseline.json, or make them that. */
  readonly gate: 'check' | 'save' | null
  readonly nodeFlags: readonly string[]
  /** Processes of Hooktide in throughput. */
  readonly workers: number
  /** Of `scale`; undefined: all. */
  readonly dimensions: readonly string[] | undefined
  /** The profile is of ordered deliveries. */
  readonly ordered: boolean
}

export const usage = `npm run bench -- [throughput] [latency] [mix] [backlog] [fanout] [memory] [lateness] [noisy] [outage] [head] [scheduled] [replay] [rebuild-broker] [drip] [ingest] [guard] [sign] [match] [tls] [scale] [profile] [all] [options]

Without a name: throughput, latency, memory and lateness. profile runs throughput once and prints where the time went.
guard, sign, match and tls need no broker.
  --rounds N          rounds of throughput and latency; the table shows median (least–most). Default 3
  --concurrency N     open POSTs. Default 256 (throughput also runs 64)
  --deliveries N      deliveries of a round, or waiting; default: the scenario's own
  --workers N         throughput: N processes of Hooktide (up --workers N). Default 1
  --dimension A,B     scale: only these of subscriptions, fanout, lanes, backlog, failing, payload
  --gate              compare the ratios with those in bench/baseline.json; exit 1 when one fell beyond its spread and 10 %
  --save-gate         write the ratios of this run there
  --ordered           profile deliveries in order by key
  --json              the result as JSON, on stdout; without it a table
  --node-flag FLAG    for the Node that runs Hooktide, e.g. --node-flag=--max-semi-space-size=16; can be repeated
KAFKA_BROKERS and HOOKTIDE_BROKER choose the broker, as for the demo; a broker that is not ours has no CPU figures.`

export function readOptions(args: readonly string[], known: readonly string[]): Options | string {
  let parsed: ReturnType<typeof parse>
  try {
    parsed = parse(args)
  } catch (error) {
    return `${(error as Error).message}\n\n${usage}`
  }
  const { values, positionals } = parsed
  if (values.help) return usage
  const unknown = positionals.find((name) => name !== 'all' && !known.includes(name))
  if (unknown !== undefined) return `there is no scenario "${unknown}"\n\n${usage}`
  for (const name of ['rounds', 'concurrency', 'deliveries', 'workers'] as const) {
    const text = values[name]
    if (text !== undefined && !/^[1-9]\d{0,6}$/.test(text))
      return `--${name} is "${text}", must be a whole number above 0`
  }
  const standard = ['throughput', 'latency', 'memory', 'lateness']
  const gating = values.gate === true || values['save-gate'] === true
  const named = positionals.length > 0 ? positionals : gating ? ['throughput', 'mix', 'fanout'] : standard
  return {
    scenarios: named.includes('all')
      ? known.filter((name) => name !== 'profile')
      : known.filter((name) => named.includes(name)),
    rounds: Number(values.rounds ?? 3),
    concurrency: Number(values.concurrency ?? 256),
    deliveries: values.deliveries === undefined ? undefined : Number(values.deliveries),
    workers: Number(values.workers ?? 1),
    dimensions: values.dimension?.split(','),
    json: values.json ?? false,
    gate: values['save-gate'] === true ? 'save' : values.gate === true ? 'check' : null,
    nodeFlags: values['node-flag'] ?? [],
    ordered: values.ordered ?? false,
  }
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rounds: { type: 'string' },
      concurrency: { type: 'string' },
      deliveries: { type: 'string' },
      workers: { type: 'string' },
      dimension: { type: 'string' },
      json: { type: 'boolean' },
      ordered: { type: 'boolean' },
      gate: { type: 'boolean' },
      'save-gate': { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
      'node-flag': { type: 'string', multiple: true },
    },
  })
}
