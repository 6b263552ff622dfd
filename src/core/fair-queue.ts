/** What fair queueing has to know of an item. */
export interface FairItem {
  readonly flow: string
  readonly cost: number
}

interface Flow<T> {
  readonly name: string
  readonly items: Fifo<T>
  deficit: number
  /** In the ring, or set aside until `wake`. */
  active: boolean
}

/**
 * Deficit round robin (Shreedhar and Varghese, 1995) over flows: each turn a flow may spend `quantum`, so a flow with
 * 200,000 items delays another's first by one turn, not by 200,000. A flow that may not run now is set aside and costs
 * nothing until it is woken. All operations are amortised O(1).
 */
export class FairQueue<T extends FairItem> {
  readonly #quantum: number
  readonly #flows = new Map<string, Flow<T>>()
  #ring: Flow<T>[] = []
  #at = 0
  #size = 0

  constructor(quantum: number) {
    this.#quantum = quantum
  }

  get size(): number {
    return this.#size
  }

  sizeOf(name: string): number {
    return this.#flows.get(name)?.items.length ?? 0
  }

  push(item: T): void {
    let flow = this.#flows.get(item.flow)
    if (flow === undefined) {
      flow = { name: item.flow, items: new Fifo(), deficit: 0, active: true }
      this.#flows.set(item.flow, flow)
      this.#ring.push(flow)
    }
    flow.items.push(item)
    this.#size++
  }

  /**
   * The next item whose flow `may` run it. `set-aside`: this flow can't run anything until `wake(flow)`.
   * Null when nothing can run now.
   */
  take(may: (item: T) => 'run' | 'set-aside'): T | null {
    while (this.#ring.length > 0) {
      if (this.#at >= this.#ring.length) this.#at = 0
      const flow = this.#ring[this.#at] as Flow<T>
      const head = flow.items.peek()
      if (head === undefined) {
        this.#leave(flow)
        this.#flows.delete(flow.name)
        continue
      }
      if (may(head) === 'set-aside') {
        flow.active = false
        flow.deficit = 0
        this.#leave(flow)
        continue
      }
      if (flow.deficit < head.cost) {
        flow.deficit += this.#quantum
        if (flow.deficit < head.cost) {
          // A head dearer than a quantum saves up over several turns.
          this.#at++
          continue
        }
      }
      flow.deficit -= head.cost
      flow.items.shift()
      this.#size--
      if (flow.items.length === 0) {
        this.#leave(flow)
        this.#flows.delete(flow.name)
      } else if (flow.deficit < (flow.items.peek() as T).cost) this.#at++
      return head
    }
    return null
  }

  wake(name: string): void {
    const flow = this.#flows.get(name)
    if (flow === undefined || flow.active) return
    flow.active = true
    this.#ring.push(flow)
  }

  /** Takes out everything `match` holds for; in order per flow. */
  remove(match: (item: T) => boolean): T[] {
    return [...this.#flows.keys()].flatMap((name) => this.removeFrom(name, match))
  }

  /** The same of one flow. */
  removeFrom(name: string, match: (item: T) => boolean): T[] {
    const flow = this.#flows.get(name)
    if (flow === undefined) return []
    const removed: T[] = []
    const kept: T[] = []
    for (const item of flow.items) (match(item) ? removed : kept).push(item)
    if (removed.length === 0) return removed
    flow.items.reset(kept)
    this.#size -= removed.length
    if (kept.length === 0) {
      this.#flows.delete(name)
      if (flow.active) this.#leave(flow)
    }
    return removed
  }

  /** Head items of all flows. */
  *heads(): Iterable<T> {
    for (const flow of this.#flows.values()) {
      const head = flow.items.peek()
      if (head !== undefined) yield head
    }
  }

  #leave(flow: Flow<T>): void {
    const i = this.#ring[this.#at] === flow ? this.#at : this.#ring.indexOf(flow)
    if (i < 0) return
    this.#ring.splice(i, 1)
    if (i < this.#at) this.#at--
  }
}

/** Array queue with O(1) shift. */
export class Fifo<T> {
  #items: (T | undefined)[] = []
  #from = 0

  get length(): number {
    return this.#items.length - this.#from
  }

  push(item: T): void {
    this.#items.push(item)
  }

  peek(): T | undefined {
    return this.#items[this.#from]
  }

  shift(): T | undefined {
    if (this.#from === this.#items.length) return undefined
    const item = this.#items[this.#from] as T
    this.#items[this.#from++] = undefined
    if (this.#from > 64 && this.#from * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#from)
      this.#from = 0
    }
    return item
  }

  reset(items: T[]): void {
    this.#items = items
    this.#from = 0
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let i = this.#from; i < this.#items.length; i++) yield this.#items[i] as T
  }
}
