/** How often each XID happened on each GPU since the start: events themselves are kept only for a while. */
import type { GpuEvent } from '../core/model.ts'

/** More kinds of XID than one machine has; a flood of made-up codes ends here. */
const MOST_KINDS = 512

export interface XidCount {
  readonly gpu: string
  readonly code: number
  readonly count: number
  /** Epoch milliseconds of the latest. */
  readonly lastAt: number
}

export class XidCounts {
  readonly #counts = new Map<string, XidCount>()

  accept(events: readonly GpuEvent[]): void {
    for (const { event, gpu, code, at } of events) {
      if (event !== 'xid' || gpu === null || code === null) continue
      const key = `${gpu} ${code}`
      const before = this.#counts.get(key)
      if (before === undefined && this.#counts.size >= MOST_KINDS) continue
      this.#counts.set(key, { gpu, code, count: (before?.count ?? 0) + 1, lastAt: Math.max(before?.lastAt ?? 0, at) })
    }
  }

  clear(): void {
    this.#counts.clear()
  }

  all(): Iterable<XidCount> {
    return this.#counts.values()
  }
}
