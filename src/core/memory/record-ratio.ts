/**
 * Sudden change of any series: how far the present exceeds the largest change so far ("record ratio"). Channels (distance from the usual
 * level, mean of a window above the one before, mean below it) are compared with their records, which fade. Constant cost per value.
 */
const DEFAULTS = {
  /** Length of the two adjacent windows, in samples. */
  window: 72,
  /** Samples after which a record counts half, but not before this much time: faster sampling must not forget sooner. */
  halfLife: 5000,
  halfLifeMs: 0,
  /** No result before this many samples and this much time. */
  warmup: 120,
  warmupMs: 0,
  /** Only the strict maximum of this many samples is a result. */
  rest: 120,
  /** Length of a season that the level follows once two of them were seen, such as a day; null when there is none. */
  seasonMs: null as number | null,
  /** Smaller changes are ignored, whatever the records are. */
  least: 0,
}
export type RecordRatioOptions = Readonly<typeof DEFAULTS>

export interface RecordRatioState {
  readonly ring: readonly number[]
  readonly count: number
  readonly newer: number
  readonly older: number
  readonly level: number | null
  readonly season: readonly (number | null)[]
  readonly records: readonly number[]
  readonly peaks: readonly (readonly [number, number])[]
  readonly lastAt: number | null
  readonly seenMs: number
}

const SEASON_BINS = 144
/** The first season is learned, the second shows how far values usually are from it. */
const KNOWN_SEASONS = 2
const SEASON_PULL = 0.2
const LEVEL_PULL = 0.01
const LOWEST = -20
/** log2 of the ratio at which a score is 1. */
const TOP = 6
/** A longer time between two values is a gap. */
const HOLE_MS = 600_000

export class RecordRatio {
  readonly #options: RecordRatioOptions
  readonly #fade: number
  readonly #warmup: number
  #lastAt = Number.NaN
  #seenMs = 0
  #ring: Float64Array
  #count = 0
  #newer = 0
  #older = 0
  #level = Number.NaN
  #season: Float64Array
  /** Of the distance, the two shifts, and the distance from what is usual at this time of the season. */
  #records = [0, 0, 0, 0]
  /** Falling maxima of the last `rest` samples: [sample number, ratio]. */
  #peaks: [number, number][] = []

  constructor(options: Partial<RecordRatioOptions> = {}) {
    this.#options = { ...DEFAULTS, ...options }
    // The shift has no record until both windows have been full for a while.
    this.#warmup = Math.max(this.#options.warmup, 3 * this.#options.window)
    this.#fade = 2 ** (-1 / this.#options.halfLife)
    this.#ring = new Float64Array(2 * this.#options.window)
    this.#season = new Float64Array(this.#options.seasonMs === null ? 0 : SEASON_BINS).fill(Number.NaN)
  }

  /** log2(present ÷ record) of the channel that stands out most, when that is news; null when it is not. 1 is twice the record. */
  update(value: number, at = 0): number | null {
    if (!Number.isFinite(value)) return null
    const number = ++this.#count
    const fade = this.#fadeSince(at)
    const distance = Math.abs(this.#distance(value))
    const surprise = Math.abs(this.#surprise(value, at))
    const change = this.#shift(value)
    const { seasonMs } = this.#options
    const isSeasonal = seasonMs !== null && this.#seenMs >= KNOWN_SEASONS * seasonMs
    let ratio = LOWEST
    for (let channel = 0; channel < (seasonMs === null ? 3 : 4); channel++) {
      const size = channel === 0 ? distance : channel === 1 ? change : channel === 2 ? -change : surprise
      const record = (this.#records[channel] ?? 0) * fade
      this.#records[channel] = Math.max(record, size)
      if (channel === (isSeasonal ? 0 : 3)) continue
      if (number <= this.#warmup || this.#seenMs < this.#options.warmupMs || size <= this.#options.least) continue
      const against = Math.max(record, this.#options.least)
      ratio = Math.max(ratio, against > 0 ? Math.log2(size / against) : TOP / 2)
    }
    // Below half the record nothing is news.
    return ratio > -1 && this.#isNews(number, Math.min(TOP, ratio)) ? Math.min(TOP, ratio) : null
  }

  /** Starts at a new level without counting it as a change. Records stay. */
  rebase(): void {
    this.#ring.fill(0)
    this.#count = 0
    this.#newer = 0
    this.#older = 0
    this.#level = Number.NaN
    this.#peaks = []
    this.#lastAt = Number.NaN
    this.#seenMs = 0
  }

  /** Since the start or the last rebase. */
  get seenMs(): number {
    return this.#seenMs
  }

  /** Mean of the newest window. */
  get present(): number {
    return this.#count === 0 ? Number.NaN : this.#newer / Math.min(this.#count, this.#options.window)
  }

  /** Mean of the window before that. */
  get past(): number {
    const filled = Math.min(Math.max(0, this.#count - this.#options.window), this.#options.window)
    return filled === 0 ? Number.NaN : this.#older / filled
  }

  snapshot(): RecordRatioState {
    return {
      ring: Array.from(this.#ring.subarray(0, Math.min(this.#count, this.#ring.length))),
      count: this.#count,
      newer: this.#newer,
      older: this.#older,
      level: Number.isNaN(this.#level) ? null : this.#level,
      season: Array.from(this.#season, (one) => (Number.isNaN(one) ? null : one)),
      records: [...this.#records],
      peaks: this.#peaks.map(([number, ratio]) => [number, ratio] as const),
      lastAt: Number.isNaN(this.#lastAt) ? null : this.#lastAt,
      seenMs: this.#seenMs,
    }
  }

  restore(state: RecordRatioState): void {
    this.#ring.fill(0)
    this.#ring.set(state.ring)
    this.#count = state.count
    this.#newer = state.newer
    this.#older = state.older
    this.#level = state.level ?? Number.NaN
    this.#season = Float64Array.from(state.season, (one) => one ?? Number.NaN)
    // The state of an older version has no fourth record.
    this.#records = [0, 1, 2, 3].map((channel) => state.records[channel] ?? 0)
    this.#peaks = state.peaks.map(([number, ratio]) => [number, ratio])
    this.#lastAt = state.lastAt ?? Number.NaN
    // The state of an older version has no time.
    this.#seenMs = state.seenMs ?? 0
  }

  /** What is left of a record since the value before: the shorter the time, the more. */
  #fadeSince(at: number): number {
    const passed = at - this.#lastAt
    this.#lastAt = at
    if (!(passed > 0 && passed <= HOLE_MS)) return this.#fade
    this.#seenMs += passed
    const { halfLife, halfLifeMs } = this.#options
    // A power costs more than everything else here; over a short time the curve is a line.
    return passed * halfLife >= halfLifeMs ? this.#fade : 1 - (Math.LN2 * passed) / halfLifeMs
  }

  #distance(value: number): number {
    if (Number.isNaN(this.#level)) this.#level = value
    const distance = value - this.#level
    this.#level += Math.max(LEVEL_PULL, 1 / this.#count) * distance
    return distance
  }

  /** Distance from what is usual at this time of the season; 0 where that is not known. */
  #surprise(value: number, at: number): number {
    const { seasonMs } = this.#options
    if (seasonMs === null) return 0
    const bin = Math.min(SEASON_BINS - 1, Math.floor(((((at % seasonMs) + seasonMs) % seasonMs) / seasonMs) * SEASON_BINS))
    const usual = this.#season[bin] ?? Number.NaN
    const surprise = Number.isNaN(usual) ? 0 : value - usual
    this.#season[bin] = Number.isNaN(usual) ? value : usual + SEASON_PULL * surprise
    return surprise
  }

  /** Mean of the newest window less the mean of the one before; 0 until both are full. */
  #shift(value: number): number {
    const { window } = this.#options
    const length = this.#ring.length
    const slot = (this.#count - 1) % length
    const leaving = this.#count > window ? (this.#ring[(slot + window) % length] ?? 0) : 0
    const gone = this.#count > length ? (this.#ring[slot] ?? 0) : 0
    this.#ring[slot] = value
    this.#newer += value - leaving
    this.#older += leaving - gone
    // Running sums drift: recount once a round.
    if (slot === 0 && this.#count > length) this.#recount()
    return this.#count < length ? 0 : (this.#newer - this.#older) / window
  }

  #recount(): void {
    const { window } = this.#options
    const length = this.#ring.length
    this.#newer = 0
    this.#older = 0
    for (let back = 0; back < length; back++) {
      const value = this.#ring[(this.#count - 1 - back + length) % length] ?? 0
      if (back < window) this.#newer += value
      else this.#older += value
    }
  }

  /** Keeps the falling maxima; true when this ratio is above all of the rest period. */
  #isNews(number: number, ratio: number): boolean {
    const peaks = this.#peaks
    while ((peaks[0]?.[0] ?? number) <= number - this.#options.rest) peaks.shift()
    const news = ratio > (peaks[0]?.[1] ?? Number.NEGATIVE_INFINITY)
    while (peaks.length > 0 && (peaks.at(-1)?.[1] ?? 0) <= ratio) peaks.pop()
    peaks.push([number, ratio])
    return news
  }
}

/** A ratio as a score in 0–1: ¹⁄₇ is exactly the record, 1 is 64 times it. */
export function scoreOf(ratio: number | null): number {
  return ratio === null ? 0 : Math.min(1, Math.max(0, (ratio + 1) / (TOP + 1)))
}

export interface SeriesPoint {
  readonly at: number
  readonly value: number | null
}

const DAY_MS = 86_400_000

/** One score per row of a recorded series, from the rows before it alone; a row without a value scores 0. */
export function scoreSeries(points: readonly SeriesPoint[]): number[] {
  const detector = new RecordRatio({ seasonMs: DAY_MS })
  return points.map(({ at, value }) => (value === null ? 0 : scoreOf(detector.update(value, at))))
}
