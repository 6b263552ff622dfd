import type { Config } from './table.ts'

/** Worker `index` (from 0) of `count` on one machine. */
export interface WorkerPlace {
  readonly index: number
  readonly count: number
}

/**
 * What one of several workers may use: the bounds of the process are those of all workers together, so each gets its part;
 * and each has a port of its own for health and metrics (`observe.port`, the next one, …; 0 stays any free one).
 */
export function workerShare(config: Config, { index, count }: WorkerPlace): Config {
  const { deliverer, observe } = config
  const part = (whole: number) => Math.max(1, Math.floor(whole / count))
  const bytes = (whole: number, least: number) => Math.max(least, Math.floor(whole / count))
  return {
    ...config,
    deliverer: {
      ...deliverer,
      maxInFlight: part(deliverer.maxInFlight),
      maxInFlightBytes: bytes(deliverer.maxInFlightBytes, mebibyte),
      perOrigin: part(deliverer.perOrigin),
      perOriginPerSecond: deliverer.perOriginPerSecond === null ? null : deliverer.perOriginPerSecond / count,
      maxBufferBytes: bytes(deliverer.maxBufferBytes, 8 * mebibyte),
    },
    objects: { ...config.objects, maxOpenBytes: bytes(config.objects.maxOpenBytes, mebibyte) },
    observe: { ...observe, port: observe.port === 0 ? 0 : observe.port + index },
  }
}

const mebibyte = 1024 * 1024
