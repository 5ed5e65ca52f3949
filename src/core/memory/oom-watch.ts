/** One series watched for running full: keeps order, restarts when capacity changes, and holds the current forecast. */
import { Exhaustion, type ExhaustionState } from './exhaustion.ts'
import type { Forecast } from './oom-forecast.ts'
import { orderOf } from './series-clock.ts'

export interface OomReading {
  readonly at: number
  readonly bytes: number
  /** Highest use on the way here, where known. */
  readonly peakBytes?: number
  /** How far capacity may be off. */
  readonly slackBytes?: number
  readonly capacityBytes: number
}

export interface OomWatchState {
  readonly exhaustion: ExhaustionState
  readonly lastAt: number | null
  readonly capacity: number
  readonly forecast: Forecast | null
  readonly seenAt: number
  readonly since: number
  readonly level: number
  readonly doubtful: boolean
  readonly below: number
}

/** Without a forecast for this share of its evidence, the danger is over. */
const PATIENCE = 0.15
const LEAST_PATIENCE_MS = 2500
const OTHER_CAPACITY = 0.3
/** Readings in a row below the start of the rise: the memory was freed. One may be a stray. */
const GIVEN_BACK = 2

export class OomWatch {
  private readonly caution: number
  private exhaustion: Exhaustion
  private lastAt: number | null = null
  private capacity = 0
  private seenAt = 0
  private below = 0
  /** Positions are seconds since the epoch. */
  forecast: Forecast | null = null
  /** When the rise behind it began. */
  since = 0
  /** Newest use as a share of capacity. */
  level = 0
  /** Set by the owner: being full would mean little. */
  doubtful = false

  /** `caution`: how much more evidence is asked for; 1 as tuned. */
  constructor(caution = 1) {
    this.caution = caution
    this.exhaustion = new Exhaustion(caution)
  }

  get lastSeenAt(): number | null {
    return this.lastAt
  }

  push(reading: OomReading): void {
    const { at, bytes, capacityBytes } = reading
    const order = this.lastAt === null ? 'next' : orderOf(at, this.lastAt)
    if (order === 'late') return
    if (order === 'restart' || Math.abs(capacityBytes - this.capacity) > OTHER_CAPACITY * capacityBytes) this.restart()
    this.capacity = capacityBytes
    this.lastAt = at
    const peak = (reading.peakBytes ?? bytes) / capacityBytes
    this.level = peak
    if (this.isGivenBack(bytes / capacityBytes)) {
      this.restart()
      this.lastAt = at
    }
    const slack = reading.slackBytes === undefined ? undefined : reading.slackBytes / capacityBytes
    const found = this.exhaustion.push(at / 1000, bytes / capacityBytes, peak, slack)
    if (found) {
      if (this.forecast === null) this.since = at - found.span * 1000
      this.forecast = withoutInfinity(found, at / 1000)
      this.seenAt = at
    } else if (this.forecast !== null) {
      const late = at / 1000 > this.forecast.latest
      if (late || at - this.seenAt > Math.max(LEAST_PATIENCE_MS, PATIENCE * (at - this.since))) this.forecast = null
    }
  }

  restart(): void {
    this.exhaustion = new Exhaustion(this.caution)
    this.lastAt = null
    this.forecast = null
    this.below = 0
  }

  /** No real forecast falls by more than the whole rise. */
  private isGivenBack(value: number): boolean {
    const { forecast } = this
    this.below = forecast !== null && value < forecast.level - forecast.slope * forecast.span - forecast.dip ? this.below + 1 : 0
    return this.below >= GIVEN_BACK
  }

  snapshot(): OomWatchState {
    return {
      exhaustion: this.exhaustion.snapshot(),
      lastAt: this.lastAt,
      capacity: this.capacity,
      forecast: this.forecast,
      seenAt: this.seenAt,
      since: this.since,
      level: this.level,
      doubtful: this.doubtful,
      below: this.below,
    }
  }

  restore(state: OomWatchState): void {
    this.exhaustion = new Exhaustion(this.caution)
    this.exhaustion.restore(state.exhaustion)
    this.lastAt = state.lastAt
    this.capacity = state.capacity
    this.forecast = state.forecast
    this.seenAt = state.seenAt
    this.since = state.since
    this.level = state.level
    this.doubtful = state.doubtful
    this.below = state.below ?? 0
  }
}

/** An open end becomes ten times the time ahead, so that it has a date. */
function withoutInfinity(forecast: Forecast, now: number): Forecast {
  if (Number.isFinite(forecast.latest)) return forecast
  return { ...forecast, latest: now + 10 * Math.max(1, forecast.fullAt - now) }
}
