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
  lows: Turn[]
  highs: Turn[]
  rising: boolean
  extreme: Turn | null
  swing: number
  pause: Pause | null
}

const KEPT = 24
/** A turn needs this share of the usual fall … */
const SHARE = 0.35
/** … and at least this much of capacity, so that noise does not turn it. */
const LEAST = 0.008
/** The usual fall is the median of this many. */
const FALLS = 5

export class Swings {
  private state: SwingsState = { lows: [], highs: [], rising: true, extreme: null, swing: 0, pause: null }

  get lows(): readonly Turn[] {
    return this.state.lows
  }

  get highs(): readonly Turn[] {
    return this.state.highs
  }

  /** True when this value completed a low: the series has fallen, turned and risen again. */
  push(position: number, value: number): boolean {
    const extreme = this.state.extreme
    if (extreme === null) {
      this.state.extreme = { position, value }
      this.state.lows.push(this.state.extreme)
      return false
    }
    if (this.state.highs.length === 0) this.pauseBeforeFirstHigh(position, value)
    if (this.state.rising ? value >= extreme.value : value <= extreme.value) {
      this.state.extreme = { position, value }
      return false
    }
    const back = Math.abs(value - extreme.value)
    if (back < LEAST || back < SHARE * this.state.swing) return false
    const turns = this.state.rising ? this.state.highs : this.state.lows
    turns.push(extreme)
    if (turns.length > KEPT) turns.shift()
    if (!this.state.rising) this.state.swing = this.usualFall()
    this.state.rising = !this.state.rising
    this.state.extreme = { position, value }
    return this.state.rising
  }

  /** A program loads, waits, then works: the first low is the end of the wait, not the start of loading. */
  private pauseBeforeFirstHigh(position: number, value: number): void {
    const pause = this.state.pause
    const low = this.state.lows[0]
    if (pause !== null && Math.abs(value - pause.value) <= LEAST) {
      pause.count++
      return
    }
    if (pause !== null && low !== undefined && pause.count >= 10 && position - pause.position > 2 * (pause.position - low.position))
      this.state.lows = [{ position, value: pause.value }]
    this.state.pause = { position, value, count: 0 }
  }

  private usualFall(): number {
    const falls: number[] = []
    for (let i = 1; i <= FALLS; i++) {
      const high = this.state.highs.at(-i)
      const low = this.state.lows.at(-i)
      if (high !== undefined && low !== undefined && low.position > high.position) falls.push(high.value - low.value)
    }
    return median(falls)
  }

  snapshot(): SwingsState {
    return structuredClone(this.state)
  }

  restore(state: SwingsState): void {
    this.state = structuredClone(state)
  }
}
