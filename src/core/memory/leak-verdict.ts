/** Whether a rise of memory is a leak, judged from one window of blocks or from a series of lows. */
import type { BlockWindow } from './ladder.ts'
import { mannKendall, median, medianAbsoluteDeviation, theilSen } from './statistics.ts'
import type { Turn } from './swings.ts'

export interface LeakOptions {
  /** The rise must be at least this share of the free memory: the further the end, the more evidence is needed. */
  readonly riseOverRoom: number
  /** The rise must exceed this many times the largest fall. */
  readonly riseOverFall: number
  readonly trendScore: number
  /** Slope of the later half against the earlier one; below it the rise is settling. */
  readonly settling: number
  /** Least number of increments that share the rise; fewer are level steps. */
  readonly increments: number
  /** How much more rise a curved climb needs: the share above is multiplied by 1 + this × |ln steadiness|. */
  readonly curvature: number
  /** How much more rise is needed when nothing is known from before it (a program's first minutes): 1 + this. */
  readonly youth: number
  readonly leastBlocks: number
}

export const LEAK_DEFAULTS: LeakOptions = {
  riseOverRoom: 0.23,
  riseOverFall: 2.5,
  trendScore: 3,
  settling: 0.65,
  increments: 5.5,
  curvature: 2,
  youth: 1.2,
  leastBlocks: 10,
}

export interface Leak {
  readonly kind: 'blocks' | 'middles' | 'creep' | 'lows'
  /** Where the rise began on the axis. */
  readonly from: number
  readonly to: number
  /** Share of capacity per axis unit. */
  readonly slope: number
  readonly rise: number
  /** Largest fall seen in the same window. */
  readonly fall: number
  /** Mann–Kendall's score. */
  readonly score: number
  /** Later slope ÷ earlier slope. */
  readonly steadiness: number
  readonly room: number
}

export const LEAST_RISE = 0.004
const GROUPS = 24
/** The slope of most pairs times the length may exceed the range of the values, but hardly by more. */
const RISE_OVER_RANGE = 1.5
/** The time before a rise is known when it is this share of the rise's length. */
const KNOWN = 0.7
/** An elbow lies at least this share of the rise below the straight line. */
const ELBOW = 0.08
/** Slopes of the halves may differ this much (logarithm) before a climb counts as curved. */
const STRAIGHT = 0.2
/** Lows that climb evenly are stronger evidence than blocks: they need only this share of the rise. */
const LOWS_SHARE = 0.7

/** `floor` and `peak` of the window are shares of capacity, 1 being full; `begin` is where the whole series began. */
export function judgeBlocks(window: BlockWindow, begin: number, options: LeakOptions = LEAK_DEFAULTS): Leak | null {
  const n = window.floor.length
  if (n < options.leastBlocks || swings(window.floor, options.riseOverFall)) return null
  const { floor, stepped } = withoutSteps(window.floor)
  const trough = beginning(floor)
  if (n - trough < options.leastBlocks) return null
  const fall = largestFall(floor, trough)
  const groups = group(window, floor, trough, stepped)
  const { position, low, high } = groups
  const count = low.length
  const slope = theilSen(position, low)
  const from = position[0] ?? 0
  const to = position[count - 1] ?? 0
  const rise = slope * (to - from) * (count / (count - 1))
  let top = Number.NEGATIVE_INFINITY
  for (let i = Math.max(0, n - 6); i < n; i++) top = Math.max(top, window.peak[i] ?? 0)
  const room = Math.max(0, 1 - top)
  if (rise < LEAST_RISE || rise < options.riseOverRoom * room || rise <= options.riseOverFall * fall) return null
  if (sharedIncrements(low) < options.increments) return null
  const half = count >> 1
  const early = theilSen(position, low, 0, count - half)
  const late = theilSen(position, low, half, count)
  const steadiness = early > 0 ? late / early : 1
  const young = 1 + options.youth * Math.max(0, 1 - (from - begin) / (KNOWN * (to - from)))
  if (late <= 0 || steadiness < options.settling || rise < young * neededRise(options, room, steadiness)) return null
  const score = mannKendall(low)
  if (score < options.trendScore) return null
  if (mannKendall(high) < 2 || theilSen(position, high) < 0.3 * slope) return null
  return { kind: 'blocks', from, to, slope, rise, fall, score, steadiness, room }
}

/** Cheap, and enough for most: no rise within these values can exceed their falls by so much. */
function swings(floor: readonly number[], riseOverFall: number): boolean {
  return RISE_OVER_RANGE * (Math.max(...floor) - Math.min(...floor)) <= riseOverFall * largestFall(floor, -2)
}

/** A cache that is trimmed again and again, but each time to a higher level: lows and highs both climb, one of them evenly. */
export function judgeLows(lows: readonly Turn[], highs: readonly Turn[], options: LeakOptions = LEAK_DEFAULTS): Leak | null {
  const run = climbing(lows)
  const first = run[0]
  const last = run.at(-1)
  if (run.length < 4 || first === undefined || last === undefined) return null
  const above = highs.filter((turn) => turn.position > first.position)
  const top = climbing(above)
  const rise = last.value - first.value
  const room = Math.max(0, 1 - (above.at(-1)?.value ?? 1))
  if (rise < 2 * LEAST_RISE || top.length < above.length || top.length < 3) return null
  if ((top.at(-1)?.value ?? 0) - (top[0]?.value ?? 0) < 0.4 * rise * ((top.length - 1) / (run.length - 1))) return null
  // Ripples on a rise have lows too; a cache that is trimmed falls by more than it keeps.
  if (usualFall(top, run) < rise / (run.length - 1)) return null
  const climbs = [climb(run), climb(top)].filter((one) => one.even && one.steadiness >= options.settling)
  const best = climbs.sort((a, b) => Math.abs(Math.log(a.steadiness)) - Math.abs(Math.log(b.steadiness)))[0]
  if (best === undefined || rise < LOWS_SHARE * neededRise(options, room, best.steadiness)) return null
  const score = mannKendall(run.map((turn) => turn.value))
  return {
    kind: 'lows',
    from: first.position,
    to: last.position,
    slope: best.slope,
    rise,
    fall: 0,
    score,
    steadiness: best.steadiness,
    room,
  }
}

/** Median fall from a high to the next low. */
function usualFall(highs: readonly Turn[], lows: readonly Turn[]): number {
  const falls: number[] = []
  for (const high of highs) {
    const low = lows.find((turn) => turn.position > high.position)
    if (low !== undefined) falls.push(high.value - low.value)
  }
  return median(falls)
}

interface Climb {
  readonly slope: number
  readonly steadiness: number
  /** No step is far from the usual one, neither in height nor in length. */
  readonly even: boolean
}

function climb(turns: readonly Turn[]): Climb {
  const position = turns.map((turn) => turn.position)
  const value = turns.map((turn) => turn.value)
  const heights: number[] = []
  const lengths: number[] = []
  for (let i = 1; i < turns.length; i++) {
    heights.push((value[i] ?? 0) - (value[i - 1] ?? 0))
    lengths.push((position[i] ?? 0) - (position[i - 1] ?? 0))
  }
  const height = median(heights)
  const even = Math.min(...heights) >= 0.3 * height && Math.max(...heights) <= 2.5 * height && Math.max(...lengths) <= 2.5 * median(lengths)
  const middle = turns.length >> 1
  const early = theilSen(position, value, 0, middle + 1)
  const late = theilSen(position, value, turns.length - 1 - middle)
  return { slope: theilSen(position, value), steadiness: early > 0 ? late / early : 0, even }
}

/** Where the climb begins: at the lowest block, or at the elbow where a level stretch after it turns into the climb. */
function beginning(floor: readonly number[]): number {
  const end = floor.length - 1
  let low = 0
  for (let i = 1; i <= end; i++) if ((floor[i] ?? 0) <= (floor[low] ?? 0)) low = i
  const start = floor[low] ?? 0
  const rise = (floor[end] ?? 0) - start
  let elbow = low
  let deepest = ELBOW * rise
  for (let i = low + 1; i < end; i++) {
    const below = start + (rise * (i - low)) / (end - low) - (floor[i] ?? 0)
    if (below > deepest) {
      deepest = below
      elbow = i
    }
  }
  return elbow
}

function neededRise(options: LeakOptions, room: number, steadiness: number): number {
  const curved = Math.max(0, Math.abs(Math.log(Math.max(1e-3, steadiness))) - STRAIGHT)
  return options.riseOverRoom * room * (1 + options.curvature * curved)
}

/** The newest turns of which each is above the one before. */
function climbing(turns: readonly Turn[]): readonly Turn[] {
  let start = turns.length - 1
  while (start > 0 && (turns[start - 1]?.value ?? 0) < (turns[start]?.value ?? 0)) start--
  return turns.slice(Math.max(0, start))
}

/** Removes a few isolated upward steps: loading something is not a leak. Many steps are a staircase and stay. */
function withoutSteps(floor: readonly number[]): { floor: readonly number[]; stepped: readonly number[] } {
  const increments: number[] = []
  for (let i = 1; i < floor.length; i++) increments.push((floor[i] ?? 0) - (floor[i - 1] ?? 0))
  const usual = median(increments)
  const limit = 6 * medianAbsoluteDeviation(increments, usual) + 0.003
  const odd = increments.filter((value) => Math.abs(value - usual) > limit)
  if (odd.length === 0 || odd.length > 4 || odd.some((value) => value < 0)) return { floor, stepped: [] }
  const result = [floor[0] ?? 0]
  const stepped = [0]
  let offset = 0
  for (let i = 0; i < increments.length; i++) {
    const increment = increments[i] ?? 0
    if (increment - usual > limit) offset += increment
    result.push((floor[i + 1] ?? 0) - offset)
    stepped.push(offset)
  }
  return { floor: result, stepped }
}

/** Largest fall of the floors or middles from `since` on. A fall as large as a rise shows that the series wanders. */
export function fallSince(window: BlockWindow, since: number, of: 'floor' | 'middle' = 'floor'): number {
  const start = window.position.findIndex((position) => position >= since)
  return start < 0 ? 0 : largestFall(window[of].slice(start), -2)
}

/** Largest fall before the trough and inside the rise after it, of the series smoothed by a running median of three. */
export function largestFall(floor: readonly number[], trough: number): number {
  const smooth = (i: number) => {
    const a = floor[i] ?? 0
    const b = floor[i - 1] ?? a
    const c = floor[i - 2] ?? b
    return a + b + c - Math.max(a, b, c) - Math.min(a, b, c)
  }
  let fall = 0
  let top = Number.NEGATIVE_INFINITY
  for (let i = 0; i < floor.length; i++) {
    const value = smooth(i)
    if (i === trough + 2) top = value
    if (value > top) top = value
    fall = Math.max(fall, top - value)
  }
  return fall
}

interface Groups {
  readonly position: number[]
  readonly low: number[]
  readonly high: number[]
}

/** At most 24 groups of blocks since the trough, each with its lowest floor and highest peak. */
export function group(window: BlockWindow, floor: readonly number[], trough: number, stepped: readonly number[] = []): Groups {
  const n = floor.length
  const size = Math.ceil((n - trough) / GROUPS)
  const result: Groups = { position: [], low: [], high: [] }
  for (let end = n; end - size >= trough; end -= size) {
    let low = Number.POSITIVE_INFINITY
    let high = Number.NEGATIVE_INFINITY
    let position = 0
    for (let i = end - size; i < end; i++) {
      low = Math.min(low, floor[i] ?? low)
      high = Math.max(high, (window.peak[i] ?? high) - (stepped[i] ?? 0))
      position += (window.position[i] ?? 0) / size
    }
    result.position.unshift(position)
    result.low.unshift(low)
    result.high.unshift(high)
  }
  return result
}

/** How many equal increments would share the rise as these do: n for an even climb, 1 for a single step. */
function sharedIncrements(values: readonly number[]): number {
  let sum = 0
  let squares = 0
  for (let i = 1; i < values.length; i++) {
    const increment = Math.max(0, (values[i] ?? 0) - (values[i - 1] ?? 0))
    sum += increment
    squares += increment * increment
  }
  return squares > 0 ? (sum * sum) / squares : 0
}
