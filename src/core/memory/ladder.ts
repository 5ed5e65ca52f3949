/** Blocks of a series at several resolutions, each block three of the level below, so that a minute and two days fit one small store. */
import { ascending } from './statistics.ts'

export const BLOCKS_PER_LEVEL = 48
const FACTOR = 3
const MOST_LEVELS = 9
const CHANNELS = 3
/** Requests end and memory dips, but it has a hard top: the upper quartile is nearer to what is held than the median. */
const UPPER = 0.75
/** Shares of capacity are stored as whole millionths: small in memory, exact in JSON. */
const UNIT = 1e6

/** What a level has seen, oldest first; blocks that held no sample are left out. */
export interface BlockWindow {
  /** Middle of each block on the axis (seconds or steps). */
  readonly position: readonly number[]
  /** Lowest value of the block; at the finest level the second lowest, so that one stray reading does not count. */
  readonly floor: readonly number[]
  readonly peak: readonly number[]
  /** The usual level of the block: the upper quartile at the finest level, the median of three above. Dips do not count. */
  readonly middle: readonly number[]
}

export interface LadderState {
  readonly base: number
  /** Per level: the first block's index, then the distance of each to the one before. */
  readonly index: readonly (readonly number[])[]
  /** Per level: floor, peak and middle of each block, in millionths. */
  readonly values: readonly (readonly number[])[]
  readonly open: readonly number[]
  readonly openIndex: number
  readonly openPeak: number
  readonly pending: readonly (readonly number[])[]
}

export class Ladder {
  /** Length of the finest block on the axis. */
  readonly base: number
  readonly levels: number
  private readonly index: Float64Array
  private readonly values: Int32Array
  private readonly counts: number[]
  /** Samples of the finest block that is still open. */
  private open: number[] = []
  private openIndex = Number.NaN
  private openPeak = 0
  /** Per level above the finest: floors, peaks and middles of the blocks below that are not yet a whole block. */
  private readonly pending: number[][]

  /** `longest`: blocks grow no longer than this. */
  constructor(base: number, longest: number) {
    this.base = base
    this.levels = Math.max(1, Math.min(MOST_LEVELS, 1 + Math.floor(Math.log(Math.max(1, longest / base)) / Math.log(FACTOR) + 1e-9)))
    this.index = new Float64Array(this.levels * BLOCKS_PER_LEVEL)
    this.values = new Int32Array(this.levels * BLOCKS_PER_LEVEL * CHANNELS)
    this.counts = new Array<number>(this.levels).fill(0)
    this.pending = Array.from({ length: this.levels }, () => [])
  }

  /** Takes a value at a position that never decreases, and the peak on the way there; returns how many levels have a new block. */
  push(position: number, value: number, peak = value): number {
    const block = Math.floor(position / this.base)
    let closed = 0
    if (block !== this.openIndex) {
      if (this.open.length > 0) closed = this.closeFinest(block)
      this.openIndex = block
      this.openPeak = peak
    } else if (peak > this.openPeak) this.openPeak = peak
    if (this.open.length < 64) this.open.push(value)
    else this.keepLowest(value)
    return closed
  }

  count(level: number): number {
    return this.counts[level] ?? 0
  }

  blockLength(level: number): number {
    return this.base * FACTOR ** level
  }

  /** Position of the newest whole block's middle, or NaN. */
  lastPosition(level: number): number {
    const count = this.count(level)
    return count === 0 ? Number.NaN : ((this.index[level * BLOCKS_PER_LEVEL + count - 1] ?? 0) + 0.5) * this.blockLength(level)
  }

  /** Newest floor, lowest floor, highest peak of the newest `recent` blocks; lowest middle, and the highest of the newest ones. */
  glance(level: number, recent: number): { last: number; lowest: number; peak: number; lowestMiddle: number; middle: number } {
    const start = level * BLOCKS_PER_LEVEL
    const count = this.count(level)
    let [lowest, lowestMiddle] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    let [peak, middle] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY]
    for (let i = 0; i < count; i++) {
      const at = (start + i) * CHANNELS
      lowest = Math.min(lowest, this.values[at] ?? 0)
      lowestMiddle = Math.min(lowestMiddle, this.values[at + 2] ?? 0)
      if (i < count - recent) continue
      peak = Math.max(peak, this.values[at + 1] ?? 0)
      middle = Math.max(middle, this.values[at + 2] ?? 0)
    }
    const last = (this.values[(start + count - 1) * CHANNELS] ?? 0) / UNIT
    return { last, lowest: lowest / UNIT, peak: peak / UNIT, lowestMiddle: lowestMiddle / UNIT, middle: middle / UNIT }
  }

  window(level: number): BlockWindow {
    const start = level * BLOCKS_PER_LEVEL
    const count = this.count(level)
    const length = this.blockLength(level)
    const position = new Array<number>(count)
    const floor = new Array<number>(count)
    const peak = new Array<number>(count)
    const middle = new Array<number>(count)
    for (let i = 0; i < count; i++) {
      const at = (start + i) * CHANNELS
      position[i] = ((this.index[start + i] ?? 0) + 0.5) * length
      floor[i] = (this.values[at] ?? 0) / UNIT
      peak[i] = (this.values[at + 1] ?? 0) / UNIT
      middle[i] = (this.values[at + 2] ?? 0) / UNIT
    }
    return { position, floor, peak, middle }
  }

  snapshot(): LadderState {
    return {
      base: this.base,
      index: this.counts.map((count, level) => {
        const start = level * BLOCKS_PER_LEVEL
        return Array.from({ length: count }, (_, i) => (this.index[start + i] ?? 0) - (i === 0 ? 0 : (this.index[start + i - 1] ?? 0)))
      }),
      values: this.counts.map((count, level) => {
        const start = level * BLOCKS_PER_LEVEL * CHANNELS
        return Array.from(this.values.subarray(start, start + count * CHANNELS))
      }),
      open: [...this.open],
      openIndex: Number.isNaN(this.openIndex) ? -1 : this.openIndex,
      openPeak: this.openPeak,
      pending: this.pending.map((one) => [...one]),
    }
  }

  static restore(state: LadderState, longest: number): Ladder {
    const ladder = new Ladder(state.base, longest)
    if (state.values.some((values, level) => values.length !== CHANNELS * (state.index[level]?.length ?? 0)))
      throw new Error('expected a floor, a peak and a middle of each block; the saved state has others')
    for (let level = 0; level < ladder.levels; level++) {
      const distances = state.index[level] ?? []
      let index = 0
      distances.forEach((distance, i) => {
        index += distance
        ladder.index[level * BLOCKS_PER_LEVEL + i] = index
      })
      ladder.counts[level] = distances.length
      ladder.values.set(state.values[level] ?? [], level * BLOCKS_PER_LEVEL * CHANNELS)
      ladder.pending[level] = [...(state.pending[level] ?? [])]
    }
    ladder.open = [...state.open]
    ladder.openIndex = state.open.length === 0 ? Number.NaN : state.openIndex
    ladder.openPeak = state.openPeak
    return ladder
  }

  /** A block with very many samples keeps its lowest two and a sample of the rest. */
  private keepLowest(value: number): void {
    this.open.sort(ascending)
    if (value < (this.open[1] ?? 0)) this.open[1] = value
  }

  private closeFinest(next: number): number {
    const sorted = this.open.sort(ascending)
    const count = sorted.length
    const floor = sorted[count >= 4 ? 1 : 0] ?? 0
    const middle = sorted[Math.ceil(UPPER * (count - 1))] ?? 0
    const peak = this.openPeak
    const index = this.openIndex
    this.open = []
    this.store(0, index, floor, peak, middle)
    return 1 + this.lift(1, index, next, floor, peak, middle)
  }

  /** Adds a closed block to the level above and closes that one when `next` lies outside it. */
  private lift(level: number, index: number, next: number, floor: number, peak: number, middle: number): number {
    const pending = this.pending[level]
    if (level >= this.levels || pending === undefined) return 0
    const parent = Math.floor(index / FACTOR)
    const nextParent = Math.floor(next / FACTOR)
    pending.push(floor, peak, middle)
    if (parent === nextParent) return 0
    let low = Number.POSITIVE_INFINITY
    let high = Number.NEGATIVE_INFINITY
    for (let i = 0; i < pending.length; i += CHANNELS) {
      low = Math.min(low, pending[i] ?? low)
      high = Math.max(high, pending[i + 1] ?? high)
    }
    const between = middleOf(pending)
    pending.length = 0
    this.store(level, parent, low, high, between)
    return 1 + this.lift(level + 1, parent, nextParent, low, high, between)
  }

  private store(level: number, index: number, floor: number, peak: number, middle: number): void {
    const start = level * BLOCKS_PER_LEVEL
    let count = this.counts[level] ?? 0
    if (count === BLOCKS_PER_LEVEL) {
      this.index.copyWithin(start, start + 1, start + count)
      this.values.copyWithin(start * CHANNELS, (start + 1) * CHANNELS, (start + count) * CHANNELS)
      count--
    }
    this.index[start + count] = index
    const at = (start + count) * CHANNELS
    this.values[at] = Math.round(floor * UNIT)
    this.values[at + 1] = Math.round(peak * UNIT)
    this.values[at + 2] = Math.round(middle * UNIT)
    this.counts[level] = count + 1
  }
}

/** The upper median of the middles of one to three blocks. */
function middleOf(blocks: readonly number[]): number {
  const [a, b, c] = [blocks[2] ?? 0, blocks[2 + CHANNELS], blocks[2 + 2 * CHANNELS]]
  if (b === undefined) return a
  return c === undefined ? Math.max(a, b) : a + b + c - Math.max(a, b, c) - Math.min(a, b, c)
}
