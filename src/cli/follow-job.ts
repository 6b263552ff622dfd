import type { Operations } from '../operations/contract.ts'
import type { JobJson } from '../operations/job-json.ts'
import { sleep } from '../operations/sleep.ts'
import type { CliDeps } from './deps.ts'
import { progressText } from './job-view.ts'
import { createProgress } from './progress.ts'

/** Until the job is over, or the command is interrupted: the job goes on then. Tells how far it is on stderr. */
export async function followJob({ clock, stderr, signal }: CliDeps, ops: Operations, job: JobJson): Promise<JobJson> {
  const progress = createProgress(stderr, clock)
  const startMs = clock.mono()
  const first = job.done
  let now = job
  while ((now.state === 'running' || now.state === 'cancelling') && !signal.aborted) {
    await sleep(clock, 500, signal)
    now = await ops.jobs.show(job.id)
    const rate = (now.done - first) / Math.max(1, clock.mono() - startMs)
    progress.update(progressText(now, rate > 0 ? (now.total - now.done) / rate : null))
  }
  progress.end()
  return now
}
