/** How far apart the records of a device are: with a long sampling interval, further than the step of their tier. */
export class Spacing {
  readonly #counts = new Map<number, number>()
  readonly #last = new Map<number, number>()
  lastAt = Number.NEGATIVE_INFINITY

  note(at: number, series: number): void {
    if (at > this.lastAt) this.lastAt = at
    const before = this.#last.get(series)
    this.#last.set(series, at)
    if (before === undefined || at <= before) return
    this.#counts.set(at - before, (this.#counts.get(at - before) ?? 0) + 1)
  }

  /** The median; 0: there are not two. */
  usualMs(): number {
    const sorted = [...this.#counts].sort(([a], [b]) => a - b)
    let left = sorted.reduce((sum, [, count]) => sum + count, 0) / 2
    for (const [ms, count] of sorted) {
      left -= count
      if (left <= 0) return ms
    }
    return 0
  }
}
