/** How far apart the records of a reading are: with a long sampling interval, further than the step of their tier. */
export class Spacing {
  readonly #counts = new Map<number, number>()
  #before = Number.NaN
  lastAt = Number.NEGATIVE_INFINITY

  note(at: number): void {
    if (at > this.lastAt) this.lastAt = at
    const ms = at - this.#before
    this.#before = at
    if (ms > 0) this.#counts.set(ms, (this.#counts.get(ms) ?? 0) + 1)
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
