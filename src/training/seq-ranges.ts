/** Which sequence numbers were received: a sorted list of ranges, short because they come nearly in order. */

export type SeqRange = readonly [from: number, to: number]

/** Above this many gaps the oldest counts as closed: its numbers then count as received. */
const MOST_RANGES = 1024

export class SeqRanges {
  readonly #ranges: [from: number, to: number][]

  constructor(ranges: readonly SeqRange[] = []) {
    this.#ranges = ranges.map(([from, to]) => [from, to])
  }

  /** The highest; 0 before the first. */
  get last(): number {
    return this.#ranges.at(-1)?.[1] ?? 0
  }

  /** False: it was there already. */
  add(seq: number): boolean {
    const ranges = this.#ranges
    const newest = ranges.at(-1)
    if (newest && seq === newest[1] + 1) {
      newest[1] = seq
      return true
    }
    // The last range that begins at or before it; late numbers are rarely far from the end.
    let index = ranges.length - 1
    while (index >= 0 && (ranges[index]?.[0] ?? 0) > seq) index--
    const before = ranges[index]
    const after = ranges[index + 1]
    if (before && seq <= before[1]) return false
    const joinsBefore = before !== undefined && seq === before[1] + 1
    const joinsAfter = after !== undefined && seq === after[0] - 1
    if (joinsBefore && joinsAfter) {
      before[1] = after[1]
      ranges.splice(index + 1, 1)
    } else if (joinsBefore) before[1] = seq
    else if (joinsAfter) after[0] = seq
    else ranges.splice(index + 1, 0, [seq, seq])
    if (ranges.length > MOST_RANGES) this.#closeOldestGap()
    return true
  }

  has(seq: number): boolean {
    return this.#ranges.some(([from, to]) => seq >= from && seq <= to)
  }

  toJSON(): readonly SeqRange[] {
    return this.#ranges
  }

  #closeOldestGap(): void {
    const [first, second] = this.#ranges
    if (first && second) this.#ranges.splice(0, 2, [first[0], second[1]])
  }
}
