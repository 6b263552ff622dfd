import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { type BatchRun, runBatch } from './sqlite-batch.ts'
import { finishBuild, openSqliteFile, Statements } from './sqlite-file.ts'
import { type HealthKey, readDeliveries, readHealth } from './sqlite-reads.ts'

/** The thread that has a build's database open, and is asked by `BuildWriter`: one request after the other, each answered. */
export type BuildRequest =
  | { readonly t: 'rows'; readonly ids: readonly string[] }
  | { readonly t: 'health'; readonly keys: readonly HealthKey[] }
  /** The runs as JSON: copied from thread to thread as one text they cost a third of what so many values do. */
  | { readonly t: 'commit'; readonly json: string }
  /** Indexed and durable, then closed. */
  | { readonly t: 'finish' }
  | { readonly t: 'close' }

export type BuildAnswer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly reason: string }

const port = parentPort as MessagePort
const statements = new Statements(openSqliteFile((workerData as { path: string }).path, 'build'))

port.on('message', (request: BuildRequest) => {
  port.postMessage(answer(request))
})

/** Without a journal nothing can be taken back: after one failure there is no next. */
let failed: string | null = null

function answer(request: BuildRequest): BuildAnswer {
  if (failed === null) {
    try {
      return { ok: true, value: work(request) }
    } catch (error) {
      failed = error instanceof Error ? error.message : String(error)
    }
  }
  return { ok: false, reason: failed }
}

function work(request: BuildRequest): unknown {
  switch (request.t) {
    case 'rows':
      return readDeliveries(statements, request.ids)
    case 'health':
      return readHealth(statements, request.keys)
    case 'commit':
      return statements.transaction(() => runBatch(statements, JSON.parse(request.json) as BatchRun[]))
    case 'finish':
      finishBuild(statements.raw)
      return statements.close()
    case 'close':
      return statements.close()
    default:
      return request satisfies never
  }
}
