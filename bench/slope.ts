/** Least squares: by how much y rises per x. */
export function slope(points: readonly (readonly [number, number])[]): number {
  const n = points.length
  const mean = (at: 0 | 1) => points.reduce((sum, point) => sum + point[at], 0) / n
  const [x, y] = [mean(0), mean(1)]
  let over = 0
  let under = 0
  for (const [a, b] of points) {
    over += (a - x) * (b - y)
    under += (a - x) ** 2
  }
  return over / under
}
