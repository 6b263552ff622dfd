/** The known name nearest to what was written, when it is near enough to be a slip; else null. */
export function suggest(written: string, known: Iterable<string>): string | null {
  let best: string | null = null
  let least = Math.max(2, Math.ceil(written.length / 3)) + 1
  for (const name of known) {
    const distance = editDistance(written.toLowerCase(), name.toLowerCase(), least)
    if (distance < least) {
      least = distance
      best = name
    }
  }
  return best
}

/** Levenshtein distance; gives up (returns `bound`) once it can't get below. */
function editDistance(a: string, b: string, bound: number): number {
  if (Math.abs(a.length - b.length) >= bound) return bound
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      next.push(Math.min((next[j - 1] as number) + 1, (row[j] as number) + 1, (row[j - 1] as number) + cost))
    }
    row = next
  }
  return Math.min(row[b.length] as number, bound)
}
