import { getPriority, setPriority } from 'node:os'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { type FaultKind, planOf } from './plan.ts'
import { JournallingReceiver } from './receiver.ts'
import { sessionMs } from './setting.ts'

/**
 * The receiver as a process of its own, so that nothing the driver does delays an answer: `receiver-process.ts SEED FAULT
 * RECORDS`. Says its address when it listens, and answers `open` and `journal`.
 */
const [seed = '', fault = '', records = ''] = process.argv.slice(2)
const receiver = new JournallingReceiver(Number(seed))
for (const { id, endpoint } of planOf(Number(seed), fault as FaultKind, Number(records), sessionMs).subscriptions)
  receiver.serve(`/${id}`, id, endpoint)
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
