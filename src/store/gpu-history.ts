import type { GpuSample } from '../core/model.ts'
import { GPU_FIELDS } from '../core/record.ts'
import { combine, MINUTE_MS, MinuteRing, MinuteTotals, type Summary } from './minute-ring.ts'
import { type FieldIndex, readValues, SampleRing } from './sample-ring.ts'

/** The current sample: shared by all, because samples are added one at a time. */
const values = new Float64Array(GPU_FIELDS.length)

export interface HistorySize {
  readonly samples: number
  readonly minutes: number
}

/** The history of one GPU: the newest samples as taken, and a summary of every minute. */
export class GpuHistory {
  readonly samples: SampleRing
  readonly #size: HistorySize
  readonly #minutes: MinuteRing
  #current: MinuteTotals | null = null
  #liveFrom = Number.POSITIVE_INFINITY
  #lastAt = Number.NEGATIVE_INFINITY

  constructor(size: HistorySize) {
    this.#size = size
    this.samples = new SampleRing(size.samples)
    this.#minutes = new MinuteRing(size.minutes)
  }

  /** Of the latest sample; -Infinity before the first. */
  get lastAt(): number {
    return this.#lastAt
  }

  get bytes(): number {
    return this.samples.bytes + this.#minutes.bytes
  }

  add(sample: GpuSample): void {
    const { at } = sample
    const minute = Math.floor(at / MINUTE_MS)
    if (this.#current?.minute !== minute) {
      if (this.#current) this.#minutes.merge(this.#current)
      if (this.#current && minute < this.#current.minute) this.#minutes.forgetAfter(minute)
      this.#current = new MinuteTotals(minute)
    }
    readValues(sample, values)
    this.#current.add(values)
    this.samples.push(at, values)
    this.#lastAt = at
    if (at < this.#liveFrom) this.#liveFrom = at
  }

  /** Takes samples from before the first live one, in ascending time; call `end` after the last. */
  startFilling(): { add(sample: GpuSample): boolean; end(): void } {
    const samples = new SampleRing(this.#size.samples)
    let totals: MinuteTotals | null = null
    return {
      add: (sample) => {
        if (sample.at >= this.#liveFrom) return false
        const minute = Math.floor(sample.at / MINUTE_MS)
        if (totals?.minute !== minute) {
          if (totals) this.#minutes.merge(totals)
          totals = new MinuteTotals(minute)
        }
        readValues(sample, values)
        totals.add(values)
        samples.push(sample.at, values)
        this.#lastAt = Math.max(this.#lastAt, sample.at)
        return true
      },
      end: () => {
        if (totals) this.#minutes.merge(totals)
        this.samples.prepend(samples)
      },
    }
  }

  /** First and last minute with samples; null when there is none. */
  extent(): { readonly first: number; readonly last: number } | null {
    const finished = this.#minutes.extent()
    const current = this.#current?.minute
    if (current === undefined) return finished
    return { first: Math.min(finished?.first ?? current, current), last: Math.max(finished?.last ?? current, current) }
  }

  /** Whether the minutes cover more than the samples between these times. */
  hasMinutesBetween(from: number, to: number): boolean {
    return this.#minutes.hasBetween(Math.floor(from / MINUTE_MS), Math.floor(to / MINUTE_MS))
  }

  /** Minutes with samples, in no order. */
  minutesBetween(first: number, last: number): number[] {
    const minutes = this.#minutes.between(first, last)
    const current = this.#current?.minute
    if (current !== undefined && current >= first && current <= last && !minutes.includes(current)) minutes.push(current)
    return minutes
  }

  minute(field: FieldIndex, minute: number): Summary | null {
    const finished = this.#minutes.summary(field, minute)
    if (this.#current?.minute !== minute) return finished
    const current = this.#current.summary(field)
    if (current.count === 0) return finished
    return finished ? combine(finished, current) : current
  }
}
