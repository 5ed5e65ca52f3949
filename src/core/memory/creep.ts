/**
 * What memory does while it is held: between two moves a reading equals the one before, unless something grows underneath.
 * A leak shows there at once and alike at every level; what requests need, or a cache that fills, grows at other paces or has stopped.
 */
import type { BlockWindow } from './ladder.ts'
import type { Leak } from './leak-verdict.ts'
import { median, quantile } from './statistics.ts'

/** Growth of memory that is held: since when, share of capacity per axis unit, and slow pieces of it against fast ones. */
export interface Creeping {
  readonly from: number
  readonly slope: number
  readonly steadiness: number
}

/** Readings of held memory: from where on the axis, time and growth in them, and how many. */
interface Held {
  readonly from: number
  readonly span: number
  readonly growth: number
  readonly readings: number
}

export interface CreepState {
  last: number | null
  at: number
  rate: number
  /** How many changes in a row were alike. */
  alike: number
  /** Since the last piece was complete. */
  piece: Held
  /** The newest while, and the one before: whether memory rests level of late. */
  newest: Held
  before: Held
  /** Of the creep that goes on: since when (null: none), and its complete pieces. */
  from: number | null
  pieces: number
  held: number
  sum: number
  /** Paces of the pieces: one of each `each`. */
  paces: readonly number[]
  each: number
  moves: number
}

/** A change of more than this is a move, whatever the one before was: half of the depth from which a dip counts. */
const MOVE = 0.01
/** Memory is held from the third change on that is like the one before: within the granularity of a device of 16 GiB (1 MiB), or a tenth. A move may take two readings. */
const ALIKE = { least: 6.1e-5, share: 0.1, times: 2 } as const
/** A piece is complete when it has grown by 30 times that granularity, in three readings or more: its pace is known within a few percent. */
const PIECE = { growth: 0.002, readings: 3 } as const
/** Memory rests level when at the supposed pace it should have grown by this much in so many readings, and has grown by less than half. */
const LEVEL = { growth: 0.003, readings: 5, share: 0.5 } as const

const NOTHING: Held = { from: 0, span: 0, growth: 0, readings: 0 }
/** A while is eight readings or more of held memory, in seven minutes or more. */
const NEWEST = { readings: 8, seconds: 420 } as const
/** Paces of the pieces: a leak goes on at one pace. Below the first it is none, above the second it is one. */
const UNEVEN = 0.8
const EVEN = 0.93
const LEAST_PIECES = 4
const MOST_PACES = 32
/** Fewer moves than this are none of requests: then floors say more. */
const LEAST_MOVES = 3
/** Growth that ends by itself rarely takes so much of what is free, or lasts so long: then less is enough. */
export const GROWTH = { overRoom: 0.9, overRoomLater: 0.4, longSeconds: 4 * 3600, requests: 3 } as const
/** The usual level must have risen by this share of the creep: what is freed at each move does not leak. */
const NET = 0.5
const USUAL_BLOCKS = 20

function longer({ from, span, growth, readings }: Held, position: number, time: number, change: number): Held {
  return { from: readings === 0 ? position : from, span: span + time, growth: growth + change, readings: readings + 1 }
}

function isLevel(stretches: readonly Held[], rate: number): boolean {
  let [span, growth, readings] = [0, 0, 0]
  for (const one of stretches) {
    span += one.span
    growth += one.growth
    readings += one.readings
  }
  return readings >= LEVEL.readings && rate * span >= LEVEL.growth && growth < LEVEL.share * rate * span
}

/** Slow pieces against fast ones: nine of ten are above the one and below the other. */
function evenness(paces: readonly number[]): number {
  return quantile(paces, 0.1) / quantile(paces, 0.9)
}

export function neededGain(seconds: number): number {
  return seconds < GROWTH.longSeconds ? GROWTH.overRoom : GROWTH.overRoomLater
}

export function judgeCreep(creep: Creeping | null, window: BlockWindow, now: number, caution: number): Leak | null {
  if (creep === null || creep.steadiness < EVEN) return null
  const { from, slope, steadiness } = creep
  const rise = slope * (now - from)
  const { middle, position } = window
  const start = position.findIndex((one) => one >= from)
  if (start < 3) return null
  const level = median(middle.slice(-Math.max(3, Math.round((middle.length - start) / 4))))
  const before = median(middle.slice(Math.max(0, start - USUAL_BLOCKS), start))
  const room = Math.max(0, 1 - level)
  if (rise < caution * neededGain(now - from) * room || level - before < NET * rise) return null
  return { kind: 'creep', from, to: now, slope, rise, fall: 0, score: 3, steadiness, room }
}

export class Creep {
  private state: CreepState = {
    last: null,
    at: 0,
    rate: 0,
    alike: 0,
    piece: NOTHING,
    newest: NOTHING,
    before: NOTHING,
    from: null,
    pieces: 0,
    held: 0,
    sum: 0,
    paces: [],
    each: 1,
    moves: 0,
  }

  push(position: number, value: number): void {
    const { state } = this
    const time = position - state.at
    const change = value - (state.last ?? value)
    const isFirst = state.last === null
    state.last = value
    state.at = position
    if (isFirst || time <= 0) return
    const rate = change / time
    const isAlike = Math.abs(rate - state.rate) * time <= Math.max(ALIKE.least, ALIKE.share * Math.abs(change))
    state.rate = rate
    if (Math.abs(change) > MOVE) state.moves++
    state.alike = isAlike && Math.abs(change) <= MOVE ? state.alike + 1 : 0
    if (state.alike < ALIKE.times) return
    state.piece = longer(state.piece, position, time, change)
    state.newest = longer(state.newest, position, time, change)
    if (Math.abs(state.piece.growth) >= PIECE.growth && state.piece.readings >= PIECE.readings) this.complete(position)
    else if (state.from !== null && isLevel([state.piece], state.sum / state.held)) state.from = null
    if (state.newest.readings < NEWEST.readings || position - state.newest.from < NEWEST.seconds) return
    state.before = state.newest
    state.newest = NOTHING
  }

  /** Whether memory that is held has not grown at this pace since then. */
  restsLevel(rate: number, since: number): boolean {
    const { newest, before } = this.state
    return isLevel(
      [newest, before].filter((one) => one.from >= since),
      rate,
    )
  }

  /** A climb is no leak where memory that is held grows at other paces, or not any more; by requests alone it may leak, but then for long. */
  speaksAgainst({ slope, from, to }: Leak): boolean {
    const { from: since, pieces, paces } = this.state
    if (to - from >= GROWTH.longSeconds * GROWTH.requests) return false
    return this.restsLevel(slope, from) || (since !== null && pieces >= LEAST_PIECES && evenness(paces) < UNEVEN)
  }

  private complete(position: number): void {
    const { state } = this
    const { growth, span } = state.piece
    const rate = growth / span
    // The first piece may hold a while before the growth.
    if (rate <= 0) state.from = null
    else if (state.from === null) Object.assign(state, { from: position, pieces: 0, held: 0, sum: 0, moves: 0, paces: [], each: 1 })
    else {
      if (state.pieces++ % state.each === 0) state.paces = [...state.paces, rate]
      if (state.paces.length === MOST_PACES) {
        state.paces = state.paces.filter((_, i) => i % 2 === 0)
        state.each *= 2
      }
      state.held += span
      state.sum += growth
    }
    state.piece = NOTHING
  }

  /** What goes on; null: nothing, or too little is known of it, or memory does not move. */
  get current(): Creeping | null {
    const { from, pieces, held, sum, paces, moves } = this.state
    return from === null || pieces < LEAST_PIECES || moves < LEAST_MOVES ? null : { from, slope: sum / held, steadiness: evenness(paces) }
  }

  snapshot(): CreepState {
    return { ...this.state }
  }

  restore(state: CreepState): void {
    this.state = { ...state }
  }
}
