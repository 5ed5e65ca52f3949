/** One series watched for a leak: keeps order, restarts when capacity changes, and decides when a leak is over. */
import { GROWTH_DEFAULTS, Growth, type GrowthOptions, type GrowthState } from './growth.ts'
import type { Leak } from './leak-verdict.ts'
import { orderOf } from './series-clock.ts'

export interface LeakWatchState {
  readonly growth: GrowthState
  readonly lastAt: number | null
  readonly position: number
  readonly capacity: number
  readonly leak: Leak | null
  readonly confirmedAt: number
  readonly top: number
  readonly unitMs: number
}

export interface LeakReading {
  readonly at: number
  /** Seconds or steps. */
  readonly position: number
  readonly bytes: number
  /** Highest use on the way here, where known. */
  readonly peakBytes?: number
  readonly capacityBytes: number
}

/** A rise must have lasted this long, whatever the axis. */
const LEAST_MS = {
  seconds: { blocks: 5000, middles: 5000, creep: 5000, lows: 3000 },
  steps: { blocks: 3000, middles: 5000, creep: 5000, lows: 3000 },
} as const
/**
 * At the end of a step the allocator holds what the program holds, without a cache: a straight climb of three quarters of the share is enough,
 * and a curved one needs as much as elsewhere. On a device the same share raises false alarms tenfold. Eight blocks are the fewest that can
 * reach the trend score.
 */
const ALLOCATOR = {
  riseOverRoom: 0.75 * GROWTH_DEFAULTS.riseOverRoom,
  riseOverFall: GROWTH_DEFAULTS.riseOverFall,
  curvature: 5,
  leastBlocks: 8,
} as const
/** A leak is over when nothing confirms it for this share of its length … */
const PATIENCE = { blocks: 0.5, middles: 0.2, creep: 0.2, lows: 0.5 } as const
const LEAST_PATIENCE_MS = 10_000
/** … or when this share of the rise was freed. */
const GIVEN_BACK = 0.6

export class LeakWatch {
  private readonly axis: 'seconds' | 'steps'
  private readonly options: GrowthOptions
  private growth: Growth
  private lastAt: number | null = null
  private position = Number.NEGATIVE_INFINITY
  private capacity = 0
  private confirmedAt = 0
  private top = 0
  /** Milliseconds per unit of the axis. */
  private unitMs: number
  /** A capacity that differs by more than this share is another one; a run's varies with the memory of other processes. */
  private readonly otherCapacity: number
  /** The leak that is going on, or null. */
  leak: Leak | null = null

  /** `caution`: how much more evidence is asked for; 1 as tuned. */
  constructor(axis: 'seconds' | 'steps', caution = 1) {
    this.axis = axis
    // Only requests make a device's lows climb by chance; the allocator at a step's end has none.
    const { riseOverRoom, riseOverFall } = axis === 'seconds' ? GROWTH_DEFAULTS : ALLOCATOR
    const weighed = { ...GROWTH_DEFAULTS, riseOverRoom: caution * riseOverRoom, riseOverFall: caution * riseOverFall, caution }
    this.options =
      axis === 'seconds'
        ? weighed
        : { ...weighed, curvature: ALLOCATOR.curvature, leastBlocks: ALLOCATOR.leastBlocks, leastSpan: 0, lowsOverFall: 0 }
    this.unitMs = axis === 'seconds' ? 1000 : 0
    this.otherCapacity = axis === 'seconds' ? 0.01 : 0.3
    this.growth = new Growth(this.options)
  }

  get lastSeenAt(): number | null {
    return this.lastAt
  }

  get msPerUnit(): number {
    return this.unitMs
  }

  /** True when the leak was confirmed now. */
  push(reading: LeakReading): boolean {
    const { at, position, bytes, capacityBytes } = reading
    const order = this.lastAt === null ? 'next' : orderOf(at, this.lastAt)
    if (order === 'late') return false
    if (order === 'restart' || position < this.position || Math.abs(capacityBytes - this.capacity) > this.otherCapacity * capacityBytes)
      this.restart(capacityBytes)
    else if (position === this.position) return false
    else if (this.options.leastSpan === 0 && this.lastAt !== null) this.learnPace((at - this.lastAt) / (position - this.position))
    this.lastAt = at
    this.position = position
    const value = bytes / this.capacity
    const found = this.growth.push(position, value, (reading.peakBytes ?? bytes) / this.capacity)
    if (found && (found.to - found.from) * this.unitMs >= LEAST_MS[this.axis][found.kind]) {
      this.leak = found
      this.confirmedAt = at
      this.top = Math.max(this.top, value)
      return true
    }
    if (this.leak !== null) this.mayEnd(at, value, this.leak)
    return false
  }

  /** Forgets the series: its process ended, or the device changed. */
  restart(capacity = this.capacity): void {
    this.growth = new Growth(this.options)
    this.leak = null
    this.lastAt = null
    this.position = Number.NEGATIVE_INFINITY
    this.capacity = capacity
    this.top = 0
  }

  snapshot(): LeakWatchState {
    return {
      growth: this.growth.snapshot(),
      lastAt: this.lastAt,
      position: Number.isFinite(this.position) ? this.position : -1,
      capacity: this.capacity,
      leak: this.leak,
      confirmedAt: this.confirmedAt,
      top: this.top,
      unitMs: this.unitMs,
    }
  }

  restore(state: LeakWatchState): void {
    this.growth = new Growth(this.options)
    this.growth.restore(state.growth)
    this.lastAt = state.lastAt
    this.position = state.lastAt === null ? Number.NEGATIVE_INFINITY : state.position
    this.capacity = state.capacity
    this.leak = state.leak
    this.confirmedAt = state.confirmedAt
    this.top = state.top
    this.unitMs = state.unitMs
  }

  private learnPace(msPerStep: number): void {
    this.unitMs = this.unitMs === 0 ? msPerStep : 0.95 * this.unitMs + 0.05 * msPerStep
  }

  private mayEnd(at: number, value: number, leak: Leak): void {
    this.top = Math.max(this.top, value)
    const patience = Math.max(LEAST_PATIENCE_MS, PATIENCE[leak.kind] * (leak.to - leak.from) * this.unitMs)
    // A sawtooth falls and rises again: freed memory counts only once nothing has confirmed the leak for a while.
    const isLevel = (leak.kind === 'middles' || leak.kind === 'creep') && this.growth.restsLevel(leak.slope, leak.to)
    const gaveBack = this.top - value > GIVEN_BACK * leak.rise && at - this.confirmedAt > LEAST_PATIENCE_MS
    if (gaveBack || isLevel || at - this.confirmedAt > patience) {
      this.leak = null
      this.top = 0
    }
  }
}
