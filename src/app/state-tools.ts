import type { Env } from '../config/read.ts'
import type { Config } from '../config.ts'
import { HooktideError } from '../core/error.ts'
import { topicNames } from '../operations/names.ts'
import type { StateProgress, StateTools } from '../operations/state-tools.ts'
import type { Clock, LogReader, Observer } from '../ports.ts'
import { decodeAttempt, decodeControl } from '../schema/decode.ts'
import { References } from '../secrets/references.ts'
import type { StateHome } from '../state/home.ts'
import { logStarts } from '../state/log-starts.ts'
import { PostgresHome } from '../state/postgres-home.ts'
import { QueryStore } from '../state/query-store.ts'
import { type BuildProgress, buildState, type FoldWorld } from '../state/rebuild.ts'
import { sourcesOf } from '../state/sources.ts'
import { SqliteHome } from '../state/sqlite-home.ts'
import { compareStates } from '../state/verify.ts'

/** Where the delivery state of a configuration is kept. Throws `secret.unavailable`. */
export function openStateHome(config: Config, env: Env, clock: Clock): StateHome {
  const { store, path, urlRef, schema } = config.state
  if (store === 'sqlite') return new SqliteHome(path, clock)
  const references = new References({ env, directory: config.secrets.directory, clock })
  const url = references.text(urlRef ?? '')
  if (!url.ok) {
    throw new HooktideError('secret.unavailable', `state.urlRef: ${url.reason}`, {
      remedy: 'Make the reference readable, or correct it.',
    })
  }
  return new PostgresHome(url.value.reveal(), schema, clock)
}

/** What the state is folded from, and how. */
export function foldWorld(
  config: Config,
  reader: LogReader,
  deps: { readonly clock: Clock; readonly observer: Observer },
): FoldWorld & { readonly attemptsTopic: string } {
  const names = topicNames(config)
  const sources = sourcesOf({ ...names, tiers: names.tiers.map(({ topic }) => topic) })
  const decoders = { attempt: decodeAttempt, control: decodeControl }
  return { reader, sources, decoders, attemptsTopic: names.attempts, ...deps }
}

export function createStateTools(
  config: Config,
  env: Env,
  deps: { readonly clock: Clock; readonly observer: Observer },
): StateTools {
  const home = openStateHome(config, env, deps.clock)
  const store = new QueryStore(home, deps.clock)
  const folding = ({ records, left, perSecond, leftMs }: BuildProgress): StateProgress => {
    return { doing: 'folding', done: records, left, perSecond, leftMs }
  }
  return {
    where: home.where,
    store,
    async rebuild({ kafka }, { signal, progress }) {
      const reader = kafka.reader()
      const build = await home.build()
      try {
        const world = foldWorld(config, reader, deps)
        const built = await buildState(world, build, { signal, progress: (now) => progress(folding(now)) })
        progress({ doing: 'indexing', done: built.records, left: 0, perSecond: built.perSecond, leftMs: null })
        await build.publish()
        return { records: built.records, perSecond: built.perSecond }
      } catch (error) {
        await build.discard()
        throw error
      } finally {
        await reader.close()
      }
    },
    async verify({ kafka }, { signal, progress, report }) {
      const reader = kafka.reader()
      const world = foldWorld(config, reader, deps)
      const starts = await logStarts(reader, world.sources, world.attemptsTopic)
      await forgetAll(home, starts)
      const live = await home.snapshot()
      const build = await home.build(true)
      try {
        const rows = await live.db.selectFrom('positions').select(['topic', 'part', 'folded']).execute()
        const folded = new Map(rows.map(({ topic, part, folded }) => [`${topic}/${part}`, folded]))
        const until = (topic: string, partition: number) => folded.get(`${topic}/${partition}`) ?? 0
        const built = await buildState(world, build, { signal, until, progress: (now) => progress(folding(now)) })
        const shortened = starts.all.some(({ start }) => start > 0)
        const compared = await compareStates(live.db, await build.built(), {
          shortened,
          signal,
          report,
          progress: (done) => progress({ doing: 'comparing', done, left: 0, perSecond: 0, leftMs: null }),
        })
        return { records: built.records, ...compared }
      } finally {
        await build.discard()
        await live.close()
        await reader.close()
      }
    },
    async erase({ by, id }, dryRun) {
      if (dryRun) {
        const { db, close } = await home.read()
        const found = await db
          .selectFrom('deliveries')
          .select(({ fn }) => fn.countAll<number>().as('n'))
          .where(by, '=', id)
          .executeTakeFirstOrThrow()
        await close()
        return Number(found.n)
      }
      const open = await home.open()
      try {
        return await open.writer.erase({ by, id })
      } finally {
        await open.close()
      }
    },
    async close() {
      await store.close()
      await home.close()
    },
  }
}

/** As a projector does from time to time: what is compared must have forgotten what the log has. */
async function forgetAll(home: StateHome, starts: Awaited<ReturnType<typeof logStarts>>): Promise<void> {
  if ((await home.current()) === null) return
  const open = await home.open()
  try {
    while ((await open.writer.forget(starts, forgetRows)) >= forgetRows);
  } finally {
    await open.close()
  }
}

const forgetRows = 2_000
