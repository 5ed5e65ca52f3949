/** The lows and highs of a series: a turn counts when the series has moved back by a good part of its usual fall. */
import { median } from './statistics.ts'

export interface Turn {
  readonly position: number
  readonly value: number
}

interface Pause extends Turn {
  count: number
}

export interface SwingsState {
  readonly lows: readonly Turn[]
  readonly highs: readonly Turn[]
  readonly rising: boolean
  readonly extreme: Turn | null
  readonly swing: number
  readonly pause: Pause | null
}

const KEPT = 24
/** A turn needs this share of the usual fall … */
const SHARE = 0.35
/** … and at least this much of capacity, so that noise does not turn it. */
const LEAST = 0.008
/** The usual fall is the median of this many. */
const FALLS = 5

export class Swings {
  lows: Turn[] = []
  highs: Turn[] = []
  private rising = true
  private extreme: Turn | null = null
  private swing = 0
  private pause: Pause | null = null

  /** True when this value completed a low: the series has fallen, turned and risen again. */
  push(position: number, value: number): boolean {
    const extreme = this.extreme
    if (extreme === null) {
      this.extreme = { position, value }
      this.lows.push(this.extreme)
      return false
    }
    if (this.highs.length === 0) this.pauseBeforeFirstHigh(position, value)
    if (this.rising ? value >= extreme.value : value <= extreme.value) {
      this.extreme = { position, value }
      return false
    }
    const back = Math.abs(value - extreme.value)
    if (back < LEAST || back < SHARE * this.swing) return false
    const turns = this.rising ? this.highs : this.lows
    turns.push(extreme)
    if (turns.length > KEPT) turns.shift()
    if (!this.rising) this.swing = this.usualFall()
    this.rising = !this.rising
    this.extreme = { position, value }
    return this.rising
  }

  /** A program loads, waits, then works: the first low is the end of the wait, not the start of loading. */
  private pauseBeforeFirstHigh(position: number, value: number): void {
    const pause = this.pause
    const low = this.lows[0]
    if (pause !== null && Math.abs(value - pause.value) <= LEAST) {
      pause.count++
      return
    }
    if (pause !== null && low !== undefined && pause.count >= 10 && position - pause.position > 2 * (pause.position - low.position))
      this.lows = [{ position, value: pause.value }]
    this.pause = { position, value, count: 0 }
  }

  private usualFall(): number {
    const falls: number[] = []
    for (let i = 1; i <= FALLS; i++) {
      const high = this.highs.at(-i)
      const low = this.lows.at(-i)
      if (high !== undefined && low !== undefined && low.position > high.position) falls.push(high.value - low.value)
    }
    return median(falls)
  }

  snapshot(): SwingsState {
    return {
      lows: [...this.lows],
      highs: [...this.highs],
      rising: this.rising,
      extreme: this.extreme,
      swing: this.swing,
      pause: this.pause && { ...this.pause },
    }
  }

  restore(state: SwingsState): void {
    this.lows = [...state.lows]
    this.highs = [...state.highs]
    this.rising = state.rising
    this.extreme = state.extreme
    this.swing = state.swing
    this.pause = state.pause && { ...state.pause }
  }
}
