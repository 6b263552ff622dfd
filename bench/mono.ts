/** Monotonic ms since boot: the one clock that all processes of a machine share, finer than the wall clock. */
export function monoMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
