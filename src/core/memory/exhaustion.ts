/** Forecasts when one series will be full: keeps the newest forecast of each window and returns the one that fits best. */
import { Creep, type CreepState } from './creep.ts'
import { ladderFrom } from './growth.ts'
import { BLOCKS_PER_LEVEL, Ladder, type LadderState } from './ladder.ts'
import { fallSince } from './leak-verdict.ts'
import { FALL_OVER_RISE, type Forecast, forecastBlocks, forecastHighs } from './oom-forecast.ts'
import { type Excursions, excursionsOf, forecastCreep, forecastNoisy } from './oom-noisy.ts'
import { Swings, type SwingsState } from './swings.ts'

export interface ExhaustionState {
  readonly ladder: LadderState | null
  readonly swings: SwingsState
  readonly first: readonly (readonly [number, number, number])[]
  readonly kept: readonly (Forecast | null)[]
  readonly creep?: CreepState
}

const LONGEST_BLOCK = 1200
/** No forecast from less than this much of the axis. */
const LEAST_SPAN = 3.5
const FIRST = 8
const HISTORY = 3
/** Uncertainty of capacity as a share of it: the limit of how exact a near forecast can be. */
const SLACK = 0.003
/** How many of a level's newest blocks are used. */
const WINDOWS = [BLOCKS_PER_LEVEL / 6, BLOCKS_PER_LEVEL / 3, BLOCKS_PER_LEVEL]

/** The level above remembers longer: a recent fall of half the rise shows that this is half of a swing. */
function swingsBack(ladder: Ladder, level: number, forecast: Forecast): boolean {
  if (level + 1 >= ladder.levels) return false
  const since = ladder.lastPosition(level) - HISTORY * forecast.span
  const rise = forecast.slope * forecast.span
  const above = ladder.window(level + 1)
  return fallSince(above, since) > FALL_OVER_RISE * rise
}

/** Of the coarsest level that knows enough: rare ones count, too. */
function pastExcursions(ladder: Ladder): Excursions {
  let level = ladder.levels - 1
  while (level > 0 && ladder.count(level) < (WINDOWS[0] ?? 0)) level--
  return excursionsOf(ladder.window(level), ladder.blockLength(level))
}

export class Exhaustion {
  private readonly caution: number
  private ladder: Ladder | null = null
  private readonly swings = new Swings()
  private readonly creep = new Creep()
  private first: [number, number, number][] = []
  /** Newest forecast: of the highs, by window of each level, along the creep. */
  private kept: (Forecast | null)[] = []

  /** `caution`: how much more evidence is asked for; 1 as tuned. */
  constructor(caution = 1) {
    this.caution = caution
  }

  /** `value` and `peak` are shares of capacity. Undefined: nothing was judged; null: judged, and no end in sight. */
  push(position: number, value: number, peak = value, slack = SLACK): Forecast | null | undefined {
    const low = this.swings.push(position, peak)
    this.creep.push(position, value)
    if (this.ladder === null) {
      this.first.push([position, value, peak])
      if (this.first.length < FIRST) return undefined
      this.ladder = ladderFrom(this.first, LONGEST_BLOCK)
      this.first = []
      return undefined
    }
    const closed = this.ladder.push(position, value, peak)
    if (low) this.kept[0] = this.accept(forecastHighs(this.swings.highs, this.swings.lows, position, slack))
    for (let level = 0; level < closed; level++) this.look(this.ladder, level, slack)
    if (closed > 0) this.kept[1 + this.ladder.levels * WINDOWS.length] = this.alongCreep(this.ladder, position, slack)
    return closed > 0 || low ? this.withPeriod(this.best(position), position) : undefined
  }

  private look(ladder: Ladder, level: number, slack: number): void {
    const count = ladder.count(level)
    const slot = 1 + level * WINDOWS.length
    for (let i = 0; i < WINDOWS.length; i++) this.kept[slot + i] = null
    if (count < (WINDOWS[0] ?? 0)) return
    const { last, lowest, peak, middle, lowestMiddle } = ladder.glance(level, 6)
    if (Math.max(last - lowest, middle - lowestMiddle) < 0.1 * (1 - peak)) return
    const window = ladder.window(level)
    for (let i = 0; i < WINDOWS.length; i++) {
      const forecast = this.accept(forecastBlocks(window, WINDOWS[i] ?? 0, ladder.blockLength(level), slack, this.caution))
      this.kept[slot + i] = forecast !== null && swingsBack(ladder, level, forecast) ? null : forecast
    }
    for (let i = 0; i < WINDOWS.length; i++) if (this.kept[slot + i] !== null) return
    const noisy = this.accept(forecastNoisy(window, ladder.blockLength(level), slack, () => pastExcursions(ladder), this.caution))
    this.kept[slot] = noisy !== null && this.creep.restsLevel(noisy.slope, ladder.lastPosition(level) - noisy.span) ? null : noisy
  }

  private alongCreep(ladder: Ladder, position: number, slack: number): Forecast | null {
    const { current } = this.creep
    return current === null
      ? null
      : this.accept(forecastCreep(current, ladder.window(0), position, slack, () => pastExcursions(ladder), this.caution))
  }

  /** Memory runs out at a high; where highs are a period apart, it may come a period later than the line says. */
  private withPeriod(forecast: Forecast | null, now: number): Forecast | null {
    const last = this.swings.highs.at(-1)
    const before = this.swings.highs.at(-4)
    if (forecast === null || last === undefined || before === undefined) return forecast
    const period = (last.position - before.position) / 3
    return now - last.position > 2 * period ? forecast : { ...forecast, latest: forecast.latest + period }
  }

  private accept(forecast: Forecast | null): Forecast | null {
    return forecast !== null && forecast.span >= LEAST_SPAN ? forecast : null
  }

  /** The forecast whose window fits its horizon best: not much shorter, not much longer than the time ahead. */
  private best(now: number): Forecast | null {
    let best: Forecast | null = null
    let lowest = Number.POSITIVE_INFINITY
    for (const forecast of this.kept) {
      if (!forecast || forecast.latest < now) continue
      const ahead = Math.max(forecast.span * 0.02, forecast.fullAt - now)
      const misfit = Math.abs(Math.log(forecast.span / (0.4 * ahead))) + 2 * forecast.spread
      if (misfit < lowest) {
        lowest = misfit
        best = forecast
      }
    }
    return best
  }

  snapshot(): ExhaustionState {
    return {
      ladder: this.ladder?.snapshot() ?? null,
      swings: this.swings.snapshot(),
      first: this.first.map(([a, b, c]) => [a, b, c] as const),
      kept: Array.from(this.kept, (one) => one ?? null),
      creep: this.creep.snapshot(),
    }
  }

  restore(state: ExhaustionState): void {
    this.ladder = state.ladder === null ? null : Ladder.restore(state.ladder, LONGEST_BLOCK)
    this.swings.restore(state.swings)
    if (state.creep) this.creep.restore(state.creep)
    this.first = state.first.map(([a, b, c]) => [a, b, c])
    this.kept = [...state.kept]
  }
}
