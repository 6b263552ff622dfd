import type { MetricEntry } from './catalogue.ts'

type Level<T> = Map<string, Level<T> | T>

/**
 * What a metric counts with, by the labels as they are given: cleaning them costs more than counting, and so does joining
 * them to one key. Bounded: beyond it nothing is remembered, and the caller makes it anew.
 */
export class Children<T extends object> {
  readonly #names: readonly string[]
  readonly #most: number
  #root: Level<T> = new Map()
  #size = 0

  constructor({ labels = [] }: MetricEntry, most: number) {
    this.#names = labels
    this.#most = most
  }

  get(labels: Readonly<Record<string, string>>): T | undefined {
    let at: Level<T> | T | undefined = this.#root
    for (const name of this.#names) at = (at as Level<T> | undefined)?.get(labels[name] ?? '')
    return this.#names.length === 0 ? (this.#root.get('') as T | undefined) : (at as T | undefined)
  }

  set(labels: Readonly<Record<string, string>>, child: T): void {
    if (this.#size >= this.#most) return
    this.#size++
    const names = this.#names.length === 0 ? [''] : this.#names
    let level = this.#root
    for (const [i, name] of names.entries()) {
      const value = labels[name] ?? ''
      if (i === names.length - 1) level.set(value, child)
      else {
        const next = (level.get(value) as Level<T> | undefined) ?? new Map()
        level.set(value, next)
        level = next
      }
    }
  }
}
