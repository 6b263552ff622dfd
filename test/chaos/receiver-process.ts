import { getPriority, setPriority } from 'node:os'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { type PlayKind, planOf } from './plan.ts'
import { JournallingReceiver } from './receiver.ts'
import { rollingSubscriptions } from './rolling-plan.ts'
import { sessionMs } from './setting.ts'

/**
 * The receiver as a process of its own, so that nothing the driver does delays an answer: `receiver-process.ts KIND SEED
 * RECORDS`. Says its address when it listens, and answers `open` and `journal`.
 */
const [kind, seed, records] = process.argv.slice(2) as [PlayKind, string, string]
const receiver = new JournallingReceiver(Number(seed))
const subscriptions =
  kind === 'rolling' ? rollingSubscriptions() : planOf(Number(seed), kind, Number(records), sessionMs).subscriptions
for (const { id, endpoint } of subscriptions) receiver.serve(`/${id}`, id, endpoint)
const delay = monitorEventLoopDelay({ resolution: 10 })
delay.enable()
try {
  // An endpoint elsewhere would not compete with the workers for this machine.
  setPriority(getPriority() - 10)
} catch {
  // Not allowed to: then it competes.
}
process.on('message', (question) => {
  if (question === 'open') process.send?.({ t: 'open', open: receiver.open })
  if (question === 'journal') {
    process.send?.({ t: 'journal', posts: receiver.posts, problems: receiver.problems, stallMs: delay.max / 1e6 })
  }
})
process.on('disconnect', () => process.exit(0))
process.send?.({ t: 'listening', base: await receiver.start() })
