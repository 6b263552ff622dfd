/** One sample of a page in the Prometheus text format. */
export interface MetricSample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/
const label = /(\w+)="((?:[^"\\]|\\.)*)"/g

/** Samples whose name begins with `prefix`; comments, and lines that are none, are passed over. */
export function parseMetrics(text: string, prefix: string): MetricSample[] {
  const samples: MetricSample[] = []
  for (const line of text.split('\n')) {
    if (!line.startsWith(prefix)) continue
    const [, name, inside = '', number] = sample.exec(line) ?? []
    const value =
      number === '+Inf' ? Number.POSITIVE_INFINITY : number === '-Inf' ? Number.NEGATIVE_INFINITY : Number(number)
    if (name === undefined || Number.isNaN(value)) continue
    const labels: Record<string, string> = {}
    for (const [, key, raw] of inside.matchAll(label)) labels[key as string] = plainText(raw as string)
    samples.push({ name, labels, value })
  }
  return samples
}

function plainText(text: string): string {
  return text.replaceAll(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c))
}
