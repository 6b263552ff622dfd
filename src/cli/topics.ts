import { Command } from 'commander'
import { roomProblems } from '../core/record-room.ts'
import type { TopicSpec } from '../core/topic-spec.ts'
import { isDrift, planLines, type TopicPlan } from '../core/topology.ts'
import { applyPlan, readPlan } from '../operations/topic-actions.ts'
import type { TopicAdmin } from '../ports.ts'

export interface TopicsDeps {
  /** Specs out of topics/*.yaml and the configuration, and a connection; rejects with a HooktideError. */
  open(): Promise<{ readonly specs: readonly TopicSpec[]; readonly admin: TopicAdmin; readonly maxEventBytes: number }>
  /** One or more lines to stdout. */
  print(text: string): void
  /** The exit code when all is done: 0 as it should be, 1 not (drift, or something was refused). */
  exit(code: 0 | 1): void
}

/** `hooktide topics plan|apply|verify`. Errors are thrown: the caller prints them; usage errors exit with 2. */
export function topicsCommand(deps: TopicsDeps): Command {
  const topics = new Command('topics')
    .description("Create Hooktide's topics, and keep them as topics/*.yaml and the configuration say")
    .addHelpText('after', examples)
  const add = (
    name: string,
    text: string,
    run: (admin: TopicAdmin, specs: readonly TopicSpec[], json: boolean, maxEventBytes: number) => Promise<0 | 1>,
  ) =>
    topics
      .command(name)
      .description(text)
      .option('--json', 'print JSON instead of a table')
      .addHelpText('after', examplesOf(name))
      .action(async ({ json = false }: { json?: boolean }) => {
        const { specs, admin, maxEventBytes } = await deps.open()
        try {
          deps.exit(await run(admin, specs, json, maxEventBytes))
        } finally {
          await admin.close()
        }
      })

  const show = (plans: readonly TopicPlan[], json: boolean) =>
    deps.print(json ? JSON.stringify({ topics: plans }, null, 2) : planTable(plans))
  const code = (plans: readonly TopicPlan[]) => (plans.every(({ action }) => action === 'ok') ? 0 : 1)

  add('plan', 'show what apply would do; changes nothing', async (admin, specs, json) => {
    const plans = await readPlan(admin, specs)
    show(plans, json)
    return code(plans)
  })
  add('apply', 'create what is missing and set what differs; never deletes', async (admin, specs, json) => {
    const done: string[] = []
    await applyPlan(admin, await readPlan(admin, specs), (line) => {
      done.push(line)
      if (!json) deps.print(line)
    })
    const after = await readPlan(admin, specs)
    if (json) deps.print(JSON.stringify({ done, topics: after }, null, 2))
    else {
      if (done.length === 0) deps.print('Nothing to do.')
      if (code(after) !== 0) deps.print(planTable(after))
    }
    return code(after)
  })
  add(
    'verify',
    'exit 1 unless the service could start with the topics as they are',
    async (admin, specs, json, maxEventBytes) => {
      const plans = await readPlan(admin, specs)
      const noRoom = roomProblems(specs, await admin.describe(specs.map(({ name }) => name)), maxEventBytes)
      if (json) deps.print(JSON.stringify({ topics: plans, noRoom }, null, 2))
      else deps.print([planTable(plans), ...noRoom.map((line) => `no room: ${line}`)].join('\n'))
      return plans.some(isDrift) || noRoom.length > 0 ? 1 : 0
    },
  )
  return topics
}

const codes = '\nExit codes: 0 as it should be, 1 drift or a failure, 2 wrong input'
const examplesOf = (name: string): string => `
Examples:
  hooktide topics ${name}
  hooktide topics ${name} --config /etc/hooktide.yaml --json | jq '.topics[] | select(.action != "ok")'${codes}`
const examples = `
Examples:
  hooktide topics plan              what would change
  hooktide topics apply             create and alter; says what it can not change
  hooktide topics verify --json     for scripts${codes}`

/** One row per topic; under it every difference, what stands in the way, and overrides that are none of ours. */
export function planTable(plans: readonly TopicPlan[]): string {
  const width = Math.max(5, ...plans.map(({ topic }) => topic.length))
  const lines = [`${'TOPIC'.padEnd(width)}  ACTION   PARTITIONS  COPIES`]
  for (const plan of plans) {
    const { topic, action, partitions, replication } = plan
    lines.push(
      `${topic.padEnd(width)}  ${action.padEnd(7)}  ${String(partitions).padStart(10)}  ${String(replication).padStart(6)}`,
    )
    const details = action === 'create' ? plan.changes.map((c) => `${c.setting} = ${c.wanted}`) : planLines(plan)
    for (const line of details) lines.push(`  ${line.replace(`${topic}: `, '')}`)
    for (const [name, value] of Object.entries(plan.kept)) lines.push(`  ${name} = ${value} is none of ours and stays`)
  }
  const counts = ['ok', 'create', 'alter', 'refused'].map((action) => {
    return [plans.filter((plan) => plan.action === action).length, action] as const
  })
  lines.push(
    counts
      .filter(([n]) => n > 0)
      .map(([n, action]) => `${n} ${action}`)
      .join(', '),
  )
  return lines.join('\n')
}
