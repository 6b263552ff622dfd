/** What a round measured: figures by name; null: could not be seen here. Absent names are not part of it. */
export type Figures = Readonly<Record<string, number | null>>

export interface Row {
  /** What was run: `Hooktide, 256 open`. */
  readonly name: string
  readonly rounds: readonly Figures[]
}

export interface Target {
  readonly row: string
  readonly figure: string
  readonly atMost?: number
  readonly atLeast?: number
}

export interface ScenarioResult {
  readonly scenario: string
  readonly about: string
  readonly rows: readonly Row[]
  readonly targets: readonly Target[]
  readonly seconds: number
  readonly load: readonly [number, number]
}

/** Figures of rows as they come in, round by round. */
export class Rows {
  readonly #rows = new Map<string, Figures[]>()

  add(name: string, figures: Figures): void {
    const rounds = this.#rows.get(name)
    if (rounds === undefined) this.#rows.set(name, [figures])
    else rounds.push(figures)
  }

  all(): Row[] {
    return [...this.#rows].map(([name, rounds]) => ({ name, rounds }))
  }
}
