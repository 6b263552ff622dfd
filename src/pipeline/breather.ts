import type { Clock } from '../ports.ts'

/**
 * Lets the rest of the process go on between pieces of long synchronous work: after so many records in all, whoever asks next
 * waits for a turn of the event loop. A dozen partitions of a backlog that go on in one turn held up every POST by 300 ms.
 */
export class Breather {
  readonly #clock: Clock
  readonly #records: number
  #spent = 0
  #next: Promise<void> | null = null

  constructor(clock: Clock, records: number) {
    this.#clock = clock
    this.#records = records
  }

  /** Before a piece of about so many: they count from now on, since others ask before it is done. */
  async turn(expected: number): Promise<void> {
    while (this.#spent >= this.#records) {
      this.#next ??= new Promise((resolve) => {
        this.#clock.after(0, () => {
          this.#next = null
          this.#spent = 0
          resolve()
        })
      })
      await this.#next
    }
    this.#spent += expected
  }

  /** It was done, and so many more than expected (or, below 0, fewer). */
  more(records: number): void {
    this.#spent += records
  }
}
