/** One case's result. `ok` null: not run here, with the reason in `got`. */
export interface Line {
  readonly id: string
  readonly level: string
  readonly expected: string
  readonly got: string
  readonly ok: boolean | null
  readonly note?: string
}

export interface Summary {
  readonly total: number
  readonly passed: number
  readonly failed: number
  readonly hardFailed: number
  readonly notRun: readonly string[]
}

export function summarize(lines: readonly Line[]): Summary {
  const failed = lines.filter((line) => line.ok === false)
  return {
    total: lines.length,
    passed: lines.filter((line) => line.ok === true).length,
    failed: failed.length,
    hardFailed: failed.filter((line) => line.level === 'hard').length,
    notRun: lines.filter((line) => line.ok === null).map((line) => line.id),
  }
}

export function formatLine(line: Line): string {
  const mark = line.ok === null ? '----' : line.ok ? 'ok  ' : 'FAIL'
  return `${mark} ${line.id} [${line.level}] expected ${line.expected}, got ${line.got}${line.note ? ` (${line.note})` : ''}`
}

/** Runs `work` over all items, at most `width` at once, results in the order of the items. */
export async function mapConcurrently<T, R>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = new Array(items.length)
  let next = 0
  await Promise.all(
    Array.from({ length: Math.min(width, items.length) }, async () => {
      while (next < items.length) {
        const at = next++
        results[at] = await work(items[at] as T)
      }
    }),
  )
  return results
}
