/** For each knot of nodes that reach each other (Tarjan, 1972) a shortest way round: `a > b > a`. */
export function circles(nodes: readonly string[], next: (node: string) => readonly string[]): string[] {
  const index = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: string[] = []
  const found: string[] = []
  const visit = (node: string): void => {
    index.set(node, index.size)
    low.set(node, index.get(node) as number)
    stack.push(node)
    for (const target of next(node)) {
      if (!index.has(target)) visit(target)
      if (stack.includes(target)) low.set(node, Math.min(low.get(node) as number, low.get(target) as number))
    }
    if (low.get(node) !== index.get(node)) return
    const knot = stack.splice(stack.indexOf(node)).sort()
    const ways = knot.map((start) => wayRound(start, next)).filter((way) => way !== null)
    const shortest = ways.sort((a, b) => a.length - b.length)[0]
    if (shortest !== undefined) found.push(shortest.join(' > '))
  }
  for (const node of nodes) if (!index.has(node)) visit(node)
  return found
}

/** The shortest way from a node to itself; null: there is none. */
function wayRound(start: string, next: (node: string) => readonly string[]): string[] | null {
  const seen = new Set<string>()
  let ways = [[start]]
  while (ways.length > 0) {
    const longer: string[][] = []
    for (const way of ways) {
      for (const target of next(way.at(-1) as string)) {
        if (target === start) return [...way, start]
        if (seen.has(target)) continue
        seen.add(target)
        longer.push([...way, target])
      }
    }
    ways = longer
  }
  return null
}
