/** Loss by step, in a bounded number of points: every second one is left out when they are too many. */
import type { Reading } from '../core/model.ts'

export type LossPoint = readonly [step: number, loss: number]

const MOST_POINTS = 512

export class LossCourse {
  #points: LossPoint[] = []
  #stride = 1
  #count = 0

  add(step: number, loss: Reading): void {
    if (loss === null || !Number.isFinite(loss)) return
    if (this.#count++ % this.#stride !== 0) return
    this.#points.push([step, loss])
    if (this.#points.length < MOST_POINTS) return
    this.#points = this.#points.filter((_, index) => index % 2 === 0)
    this.#stride *= 2
  }

  points(): readonly LossPoint[] {
    return this.#points
  }
}

/** The loss at a step: of the nearest one, within a tenth of the course; null: there is none. */
export function lossAt(course: readonly LossPoint[], step: number): Reading {
  let [found, distance]: [Reading, number] = [null, Number.POSITIVE_INFINITY]
  for (const [at, loss] of course) if (Math.abs(at - step) < distance) [found, distance] = [loss, Math.abs(at - step)]
  const last = course.at(-1)?.[0] ?? 0
  return distance <= Math.max(1, last / 10) ? found : null
}
