/**
 * What each band had in use after every event. Columns of any stretch are made from it without a look at what came before: the levels
 * are kept at every so many events.
 */
import { type BandColumns, columnStart, differencesOf } from '../../core/memory/snapshot-picture.ts'
import { ACTION } from '../read/keys.ts'
import { reservedAtStart } from '../verdict/curve.ts'
import type { Device } from '../verdict/device.ts'
import { type Lifetimes, NONE } from '../verdict/lifetimes.ts'
import type { Selection } from '../verdict/selection.ts'
import type { Grouping } from './grouping.ts'

const STOP_EVERY = 1 << 14
/** The event changes no band. */
const NO_BAND = 255

export interface TrackInput {
  readonly device: Device
  readonly lifetimes: Lifetimes
  readonly selection: Selection
  readonly grouping: Grouping
  /** By group: its band. */
  readonly bandOf: (group: number) => number
  readonly bandCount: number
}

/** Levels at a moment: one a band, then what is in use and what is reserved. */
type Levels = Float64Array<ArrayBuffer>

export class BandTrack {
  readonly bandCount: number
  readonly #device: Device
  readonly #lifetimes: Lifetimes
  readonly #bands: Uint8Array
  readonly #stops: Levels[] = []

  constructor({ device, lifetimes, selection, grouping, bandOf, bandCount }: TrackInput) {
    this.#device = device
    this.#lifetimes = lifetimes
    this.bandCount = bandCount
    const { trace, early, partners } = lifetimes
    this.#bands = new Uint8Array(trace.count).fill(NO_BAND)
    const levels: Levels = new Float64Array(bandCount + 2)
    levels[bandCount + 1] = reservedAtStart(device)
    const earlyBands = new Uint8Array(early.sizes.length).fill(NO_BAND)
    for (let block = 0; block < earlyBands.length; block++) {
      if (!selection.hasEarly(lifetimes, block)) continue
      const band = bandOf(grouping.ofEarly(block))
      earlyBands[block] = band
      change(levels, bandCount, band, early.sizes[block] as number)
    }
    for (let i = 0; i < trace.count; i++) {
      const action = trace.action(i)
      if (action === ACTION.alloc) {
        if (trace.address(i) >= 0 && selection.hasAlloc(i)) this.#bands[i] = bandOf(grouping.ofAlloc(i))
      } else if (action === lifetimes.endAction) {
        const partner = partners[i] as number
        if (partner !== NONE) this.#bands[i] = partner >= 0 ? (this.#bands[partner] as number) : (earlyBands[-2 - partner] as number)
      }
    }
    for (let i = 0; i < trace.count; i++) {
      if (i % STOP_EVERY === 0) this.#stops.push(levels.slice())
      this.#apply(levels, i)
    }
    if (trace.count === 0) this.#stops.push(levels)
  }

  /** In `count` equal parts, fewer where there are fewer events. */
  columns(from: number, to: number, count: number): BandColumns {
    const { trace } = this.#device
    const many = Math.min(count, to - from)
    const highestAt = new Float64Array(many)
    const times = new Float64Array(many)
    const least = new Float64Array(many)
    const reserved = new Float64Array(many)
    const bands = Array.from({ length: this.bandCount }, () => new Float64Array(many))
    const levels = this.#levelsBefore(from)
    const [used, held] = [this.bandCount, this.bandCount + 1]
    const best: Levels = new Float64Array(levels.length)
    let hasTimes = trace.time(0) !== null
    for (let column = 0; column < many; column++) {
      const [begin, end] = [columnStart({ from, to }, many, column), columnStart({ from, to }, many, column + 1)]
      let [at, low, most] = [begin - 1, Number.POSITIVE_INFINITY, 0]
      // What was there before the first event belongs to the first column: it may be the most there ever was.
      let isFound = begin === 0
      if (isFound) {
        best.set(levels)
        low = levels[used] as number
        most = levels[held] as number
      }
      for (let i = begin; i < end; i++) {
        this.#apply(levels, i)
        const now = levels[used] as number
        if (!isFound || now > (best[used] as number)) {
          best.set(levels)
          at = i
          isFound = true
        }
        if (now < low) low = now
        if ((levels[held] as number) > most) most = levels[held] as number
      }
      highestAt[column] = at
      const time = trace.time(Math.max(0, at))
      if (time === null) hasTimes = false
      else times[column] = time - (trace.time(0) ?? 0)
      least[column] = low
      reserved[column] = most
      for (let band = 0; band < this.bandCount; band++) (bands[band] as Float64Array)[column] = best[band] as number
    }
    return {
      from,
      to,
      highestAt: differencesOf(highestAt),
      timesUs: hasTimes ? differencesOf(times) : null,
      bands: bands.map(differencesOf),
      least: differencesOf(least),
      reserved: differencesOf(reserved),
    }
  }

  /** What was in use after an event; -1: before the first. */
  usedAfter(index: number): number {
    return this.#levelsBefore(index + 1)[this.bandCount] as number
  }

  #levelsBefore(index: number): Levels {
    const stop = Math.min(this.#stops.length - 1, Math.floor(index / STOP_EVERY))
    const levels = (this.#stops[stop] as Levels).slice()
    for (let i = stop * STOP_EVERY; i < index; i++) this.#apply(levels, i)
    return levels
  }

  #apply(levels: Levels, index: number): void {
    const { trace } = this.#device
    switch (trace.action(index)) {
      case ACTION.alloc: {
        const { replaced } = this.#lifetimes
        const before = replaced.size === 0 ? undefined : replaced.get(index)
        if (before !== undefined) change(levels, this.bandCount, this.#bands[before] as number, -trace.size(before))
        change(levels, this.bandCount, this.#bands[index] as number, trace.size(index))
        break
      }
      case ACTION.free_requested:
      case ACTION.free_completed: {
        const band = this.#bands[index] as number
        if (band === NO_BAND) break
        const partner = this.#lifetimes.partners[index] as number
        const size = partner >= 0 ? trace.size(partner) : (this.#lifetimes.early.sizes[-2 - partner] as number)
        change(levels, this.bandCount, band, -size)
        break
      }
      case ACTION.segment_alloc:
      case ACTION.segment_map:
        levels[this.bandCount + 1] = (levels[this.bandCount + 1] as number) + trace.size(index)
        break
      case ACTION.segment_free:
      case ACTION.segment_unmap:
        levels[this.bandCount + 1] = (levels[this.bandCount + 1] as number) - trace.size(index)
        break
      default:
    }
  }
}

function change(levels: Levels, used: number, band: number, bytes: number): void {
  if (band === NO_BAND) return
  levels[band] = (levels[band] as number) + bytes
  levels[used] = (levels[used] as number) + bytes
}
