/** Of rounds: the median with what it spread between. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  return { median: quantile(sorted, 0.5), min: sorted[0] ?? Number.NaN, max: sorted.at(-1) ?? Number.NaN }
}

/** Linear between the two nearest; `sorted` ascending. NaN of nothing. */
export function quantile(sorted: ArrayLike<number>, q: number): number {
  if (sorted.length === 0) return Number.NaN
  const at = (sorted.length - 1) * q
  const low = Math.floor(at)
  const a = sorted[low] as number
  const b = sorted[Math.min(low + 1, sorted.length - 1)] as number
  return a + (b - a) * (at - low)
}

/** Chooses 0 … count − 1 by Zipf's law (exponent 1), evenly spread: the same sequence in every run. */
export function createZipf(count: number): () => number {
  const sums = new Float64Array(count)
  let sum = 0
  for (let i = 0; i < count; i++) {
    sum += 1 / (i + 1)
    sums[i] = sum
  }
  // Golden-ratio steps: low discrepancy, so that a round of some thousand draws has the law's shares already.
  let u = 0.5
  return () => {
    u = (u + 0.618_033_988_749_894_9) % 1
    const wanted = u * sum
    let low = 0
    let high = count - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if ((sums[middle] as number) < wanted) low = middle + 1
      else high = middle
    }
    return low
  }
}
