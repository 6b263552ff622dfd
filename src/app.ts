import type { RehearsalEdge } from './app/rehearse.ts'
import type { Service } from './app/service.ts'
import type { ServiceOptions } from './app/service-options.ts'
import type { DemoOptions, Env, RehearsalOptions, RehearsalSummary } from './cli/deps.ts'
import type { Config } from './config.ts'
import type { DemoEdge } from './demo/demo.ts'
import type { Cluster } from './operations/cluster.ts'
import type { Clock, Observer } from './ports.ts'

/** The only real clock, timers and chance of the program. */
export const systemClock: Clock = {
  now: () => Date.now(),
  mono: () => performance.now(),
  after(ms, fn) {
    const timer = setTimeout(fn, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
  random: () => Math.random(),
}

// Loaded when they are needed: a command that only prints help must not wait for clients it does not use.

/** One connection to a cluster, for a command. */
export async function connect(config: Config, env: Env, deps: { clock: Clock; observer: Observer }): Promise<Cluster> {
  const { connectKafka } = await import('./app/connect-kafka.ts')
  return connectKafka(config, env, deps)
}

/** The service itself; see `app/service.ts`. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const service = await import('./app/service.ts')
  return service.startService(options)
}

/** The demo; resolves to whether everything was as it must be. */
export async function runDemo(options: DemoOptions, edge: DemoEdge): Promise<boolean> {
  const demo = await import('./demo/demo.ts')
  return demo.runDemo(options, edge)
}

/** The rehearsal of an outage, on topics of its own. */
export async function rehearse(options: RehearsalOptions, edge: RehearsalEdge): Promise<RehearsalSummary> {
  const rehearsal = await import('./app/rehearse.ts')
  return rehearsal.rehearse(options, edge)
}
