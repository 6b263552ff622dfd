export interface Column {
  readonly title: string
  readonly right?: boolean
  /** Longer cells are cut with an ellipsis. */
  readonly max?: number
}

/** A table whose columns are as wide as their widest cell; no line ends in blanks. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => columns.map(({ max }, i) => clip(oneLine(row[i] ?? ''), max ?? 1000)))
  const widths = columns.map(({ title }, i) => Math.max(title.length, ...cells.map((row) => (row[i] as string).length)))
  const line = (row: readonly string[]) =>
    columns
      .map(({ right }, i) => {
        const cell = row[i] as string
        return right === true ? cell.padStart(widths[i] as number) : cell.padEnd(widths[i] as number)
      })
      .join('  ')
      .trimEnd()
  return [line(columns.map(({ title }) => title)), ...cells.map(line)].join('\n')
}

/** Text of others must not move the cursor or break a table: control characters become a visible stand-in. */
export function oneLine(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '·')
}

export function clip(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max - 1)}…` : text
}

/** `850ms`, `12s`, `3m05s`, `2h10m`, `4d03h`: two units at most, for people. */
export function ago(ms: number): string {
  if (ms < 0) return `-${ago(-ms)}`
  if (ms < 1000) return `${Math.round(ms)}ms`
  const s = Math.floor(ms / 1000)
  if (s < 60) return `${s}s`
  const two = (n: number) => String(n).padStart(2, '0')
  if (s < 3600) return `${Math.floor(s / 60)}m${two(s % 60)}s`
  if (s < 86_400) return `${Math.floor(s / 3600)}h${two(Math.floor(s / 60) % 60)}m`
  return `${Math.floor(s / 86_400)}d${two(Math.floor(s / 3600) % 24)}h`
}

/** `2026-05-01 10:00:00Z`. */
export function time(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')}Z`
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`
}
