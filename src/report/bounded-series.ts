/** A series of any length in bounded memory: when it is full, neighbors are joined; each point keeps its extremes. */
import type { Reading } from '../core/model.ts'

const MOST_POINTS = 1200

export interface SeriesColumns {
  readonly at: number[]
  readonly mean: Reading[]
  readonly min: Reading[]
  readonly max: Reading[]
}

interface Point {
  at: number
  sum: number
  min: number
  max: number
  /** Samples in this point, and those of them with a value. */
  samples: number
  values: number
}

export class BoundedSeries {
  #points: Point[] = []
  #samplesPerPoint = 1

  push(at: number, value: Reading): void {
    let last = this.#points.at(-1)
    if (last === undefined || last.samples >= this.#samplesPerPoint) {
      if (this.#points.length >= MOST_POINTS) this.#halve()
      last = { at, sum: 0, min: Number.POSITIVE_INFINITY, max: Number.NEGATIVE_INFINITY, samples: 0, values: 0 }
      this.#points.push(last)
    }
    last.samples++
    if (value === null) return
    last.values++
    last.sum += value
    last.min = Math.min(last.min, value)
    last.max = Math.max(last.max, value)
  }

  columns(): SeriesColumns {
    const known = (point: Point, value: number): Reading => (point.values === 0 ? null : value)
    return {
      at: this.#points.map((point) => point.at),
      mean: this.#points.map((point) => known(point, point.sum / point.values)),
      min: this.#points.map((point) => known(point, point.min)),
      max: this.#points.map((point) => known(point, point.max)),
    }
  }

  #halve(): void {
    const joined: Point[] = []
    for (let index = 0; index < this.#points.length; index += 2) {
      const first = this.#points[index]
      const second = this.#points[index + 1]
      if (first === undefined) continue
      if (second !== undefined) {
        first.sum += second.sum
        first.min = Math.min(first.min, second.min)
        first.max = Math.max(first.max, second.max)
        first.samples += second.samples
        first.values += second.values
      }
      joined.push(first)
    }
    this.#points = joined
    this.#samplesPerPoint *= 2
  }
}
