/** Watches one series for a leak: feeds the ladder and the swings, and judges when a block or a low is complete. */

import { Creep, type CreepState, judgeCreep } from './creep.ts'
import { Ladder, type LadderState } from './ladder.ts'
import { judgeMiddles, LEAST_MIDDLES } from './leak-middles.ts'
import { fallSince, judgeBlocks, judgeLows, LEAK_DEFAULTS, LEAST_RISE, type Leak, type LeakOptions } from './leak-verdict.ts'
import { ascending } from './statistics.ts'
import { Swings, type SwingsState } from './swings.ts'

export interface GrowthOptions extends LeakOptions {
  /** Blocks grow no longer than this on the axis. */
  readonly longestBlock: number
  /** A rise must have lasted this long on the axis. */
  readonly leastSpan: number
  /** Climbing lows must exceed every fall of the medians by this much. */
  readonly lowsOverFall: number
  /** How much more evidence is asked for; 1 as tuned. */
  readonly caution: number
}

export const GROWTH_DEFAULTS: GrowthOptions = { ...LEAK_DEFAULTS, longestBlock: 7200, leastSpan: 5, lowsOverFall: 4, caution: 1 }

export interface GrowthState {
  readonly ladder: LadderState | null
  readonly swings: SwingsState
  readonly begin: number
  readonly first: readonly (readonly [number, number, number])[]
  readonly creep?: CreepState
}

const FIRST = 8
/** Lows that climb evenly may be judged after this share of the least span. */
const LOWS_SPAN = 0.6
/** How far back a fall still counts, in lengths of the rise. */
const HISTORY = 2.5

/** Requests that come and go also make lows that climb, so their falls count for longer. */
const LOWS_HISTORY = 16

/** What was gained over all that is remembered must be this share of the rise. */
const LEAST_GAIN = 0.25
/** Below this share of the free memory there is nothing to judge. */
const LEAST_MIDDLES_RISE = 0.2

interface Falls {
  /** Finest level that is asked. */
  readonly from: number
  /** How far back, in lengths of the rise. */
  readonly history: number
  /** The rise must exceed the largest fall by this much. */
  readonly over: number
  readonly of?: 'floor' | 'middle'
}

/** Coarser levels remember longer: a large fall there makes the rise an ordinary one. */
function wandered(ladder: Ladder, leak: Leak, { from, history, over, of }: Falls): boolean {
  const since = leak.from - history * (leak.to - leak.from)
  for (let level = from; level < ladder.levels; level++) if (leak.rise <= over * fallSince(ladder.window(level), since, of)) return true
  return false
}

/** Coarser levels remember longer: a server that was as high on the day before only follows its day. */
function wasThere(ladder: Ladder, level: number, leak: Leak): boolean {
  for (let above = level + 1; above < ladder.levels; above++) {
    const { position, middle } = ladder.window(above)
    const before = middle.filter((_, i) => (position[i] ?? 0) < leak.from)
    if (1 - leak.room - Math.max(0, ...before) < LEAST_GAIN * leak.rise) return true
  }
  return false
}

/** Length of the finest block for samples `gap` apart: a power of two times half a unit, holding two samples or more. */
export function finestBlock(gap: number): number {
  let length = 0.5
  while (length < 2 * gap) length *= 2
  return length
}

/** A ladder for samples that are as far apart as these first ones, which it takes. */
export function ladderFrom(first: readonly (readonly [position: number, value: number, peak: number])[], longest: number): Ladder {
  const gaps = first.slice(1).map(([position], i) => position - (first[i]?.[0] ?? 0))
  const ladder = new Ladder(finestBlock(gaps.sort(ascending)[gaps.length >> 1] ?? 1), longest)
  for (const [position, value, peak] of first) ladder.push(position, value, peak)
  return ladder
}

export class Growth {
  private readonly options: GrowthOptions
  private ladder: Ladder | null = null
  private readonly swings = new Swings()
  private readonly creep = new Creep()
  private begin = 0
  private first: [number, number, number][] = []

  constructor(options: GrowthOptions = GROWTH_DEFAULTS) {
    this.options = options
  }

  /** `value` is a share of capacity. Returns undefined when nothing was judged, null when judged and no leak was seen. */
  push(position: number, value: number, peak = value): Leak | null | undefined {
    const lowComplete = this.swings.push(position, value)
    this.creep.push(position, value)
    if (this.ladder === null) {
      this.first.push([position, value, peak])
      if (this.first.length === FIRST) this.open()
      return undefined
    }
    const closed = this.ladder.push(position, value, peak)
    let judged: Leak | null | undefined
    for (let level = 0; level < closed; level++) {
      judged ??= null
      const found = this.judge(level)
      if (found !== null && (judged === null || found.score > judged.score)) judged = found
    }
    if (lowComplete && !judged) {
      const found = this.accept(judgeLows(this.swings.lows, this.swings.highs, this.options), LOWS_SPAN)
      const falls = { from: 0, history: LOWS_HISTORY, over: this.options.lowsOverFall, of: 'middle' } as const
      if (found !== null && !wandered(this.ladder, found, falls)) judged = found
    }
    if (closed > 0 && !judged)
      judged = judgeCreep(this.creep.current, this.ladder.window(Math.min(1, this.ladder.levels - 1)), position, this.options.caution)
    return judged
  }

  /** Whether memory that is held has not grown at this pace since then. */
  restsLevel(rate: number, since: number): boolean {
    return this.creep.restsLevel(rate, since)
  }

  snapshot(): GrowthState {
    return {
      ladder: this.ladder?.snapshot() ?? null,
      begin: this.begin,
      swings: this.swings.snapshot(),
      first: this.first.map(([a, b, c]) => [a, b, c] as const),
      creep: this.creep.snapshot(),
    }
  }

  restore(state: GrowthState): void {
    this.ladder = state.ladder === null ? null : Ladder.restore(state.ladder, this.options.longestBlock)
    this.swings.restore(state.swings)
    if (state.creep) this.creep.restore(state.creep)
    this.begin = state.begin
    this.first = state.first.map(([a, b, c]) => [a, b, c])
  }

  private open(): void {
    this.begin = this.first[0]?.[0] ?? 0
    this.ladder = ladderFrom(this.first, this.options.longestBlock)
    this.first = []
  }

  private judge(level: number): Leak | null {
    const ladder = this.ladder
    if (ladder === null || ladder.count(level) < this.options.leastBlocks) return null
    const { last, lowest, peak, middle, lowestMiddle } = ladder.glance(level, 6)
    const floorsRise = last - lowest >= Math.max(LEAST_RISE, 0.7 * this.options.riseOverRoom * (1 - peak))
    const middlesRise = ladder.count(level) >= LEAST_MIDDLES && middle - lowestMiddle >= LEAST_MIDDLES_RISE * (1 - middle)
    if (!floorsRise && !middlesRise) return null
    const window = ladder.window(level)
    const leak = floorsRise ? this.accept(judgeBlocks(window, this.begin, this.options)) : null
    const history = { from: level + 1, history: HISTORY, over: this.options.riseOverFall }
    if (leak !== null && !wandered(ladder, leak, history)) return leak
    const noisy = middlesRise ? this.accept(judgeMiddles(window, this.options.caution)) : null
    return noisy === null || this.creep.speaksAgainst(noisy) || wasThere(ladder, level, noisy) ? null : noisy
  }

  private accept(leak: Leak | null, share = 1): Leak | null {
    return leak !== null && leak.to - leak.from >= share * this.options.leastSpan ? leak : null
  }
}
