/** Real time passing. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Asks until it is true; false when time ran out. */
export async function until(ask: () => boolean | Promise<boolean>, withinMs: number, everyMs = 100): Promise<boolean> {
  const endMs = performance.now() + withinMs
  for (;;) {
    if (await ask()) return true
    if (performance.now() > endMs) return false
    await pause(everyMs)
  }
}
