import { version } from '../cli/version.ts'
import type { Config } from '../config.ts'
import { HooktideError } from '../core/error.ts'
import type { Tracer } from '../ports/tracer.ts'
import type { Clock, Observer } from '../ports.ts'
import { References } from '../secrets/references.ts'

/** The tracer, where a collector is configured; else none, and nothing of it is loaded. Throws `secret.unavailable`. */
export async function openTraces(
  { observe, secrets, kafka }: Config,
  env: Readonly<Record<string, string | undefined>>,
  { clock, observer }: { readonly clock: Clock; readonly observer: Observer },
): Promise<{ readonly tracer: Tracer | null; close(): Promise<void> }> {
  const { url, authorizationRef, sampleRatio } = observe.traces
  if (url === null) return { tracer: null, close: async () => undefined }
  const found =
    authorizationRef === null
      ? null
      : new References({ env, directory: secrets.directory, clock }).text(authorizationRef)
  if (found !== null && !found.ok) {
    throw new HooktideError('secret.unavailable', `observe.traces.authorizationRef: ${found.reason}`, {
      remedy: 'Make the reference readable, or set it to null.',
    })
  }
  const [{ createTracer }, { SpanExporter }] = await Promise.all([
    import('../observe/tracer.ts'),
    import('../observe/span-exporter.ts'),
  ])
  const exporter = new SpanExporter({
    url,
    authorization: found?.value.reveal() ?? null,
    resource: { 'service.name': kafka.clientId, 'service.version': version },
    version,
    clock,
    observer,
  })
  return {
    tracer: createTracer({ clock, sampleRatio, ended: (span) => exporter.add(span) }),
    close: () => exporter.close(),
  }
}
