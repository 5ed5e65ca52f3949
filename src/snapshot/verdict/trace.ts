/** The events of one device, counted from 0. */
import { ACTION } from '../read/keys.ts'
import type { Run, SnapshotTables } from '../read/snapshot-tables.ts'

export class Trace {
  readonly count: number
  readonly #events: SnapshotTables['events']
  readonly #first: number
  readonly #deviceFree: SnapshotTables['deviceFree']

  constructor(tables: SnapshotTables, run: Run) {
    this.#events = tables.events
    this.#deviceFree = tables.deviceFree
    this.#first = run.first
    this.count = run.count
  }

  action(index: number): number {
    return this.#events.action(this.#first + index)
  }

  /** Id in the table of addresses; -1: none. */
  address(index: number): number {
    return this.#events.address(this.#first + index)
  }

  size(index: number): number {
    return this.#events.size(this.#first + index)
  }

  stack(index: number): number {
    return this.#events.stack(this.#first + index)
  }

  stream(index: number): number {
    return this.#events.stream(this.#first + index)
  }

  pool(index: number): number {
    return this.#events.pool(this.#first + index)
  }

  metadata(index: number): number {
    return this.#events.metadata(this.#first + index)
  }

  /** Microseconds since 1970; null where the file has no times, as those of torch 2.1. */
  time(index: number): number | null {
    if (index < 0 || index >= this.count) return null
    const time = this.#events.time(this.#first + index)
    return Number.isNaN(time) ? null : time
  }

  /** What the driver said was free at an oom event. */
  deviceFree(index: number): number | null {
    const bytes = this.#deviceFree.get(this.#first + index)
    return bytes === undefined || Number.isNaN(bytes) ? null : bytes
  }

  /** First event that came later; times may repeat, the order of the list is the truth. */
  indexAfter(time: number): number {
    let [low, high] = [0, this.count]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.time(middle) ?? 0) <= time) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Indexes of events of one action. */
  find(action: number): number[] {
    const found: number[] = []
    for (let i = 0; i < this.count; i++) if (this.action(i) === action) found.push(i)
    return found
  }

  /** By action, as counts. */
  counts(): Float64Array {
    const counts = new Float64Array(Object.keys(ACTION).length)
    for (let i = 0; i < this.count; i++) {
      const action = this.action(i)
      counts[action] = (counts[action] as number) + 1
    }
    return counts
  }
}
