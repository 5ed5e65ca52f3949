/** The last minutes of two readings of a GPU, for its small picture. Bounded; in order of time. */
import type { Reading } from '../../../src/core/model.ts'

export interface RecentPoint {
  readonly at: number
  readonly utilization: Reading
  readonly memory: Reading
}

const SPAN_MS = 5 * 60_000
const STEP_MS = 1000

export class Recent {
  #points: RecentPoint[] = []

  /** At most one point a second: the picture is not wider. */
  push(point: RecentPoint): void {
    const last = this.#points.at(-1)
    if (last && point.at < last.at) this.#points = []
    else if (last && point.at - last.at < STEP_MS * 0.9) return
    this.#points.push(point)
    const oldest = point.at - SPAN_MS
    if ((this.#points[0]?.at ?? oldest) < oldest - STEP_MS * 10) this.#points = this.#points.filter(({ at }) => at >= oldest)
  }

  /** What the agent kept while this page did not look; later points stay. */
  backfill(points: readonly RecentPoint[]): void {
    const newest = points.at(-1)?.at ?? Number.NEGATIVE_INFINITY
    this.#points = [...points, ...this.#points.filter(({ at }) => at > newest)]
  }

  points(): readonly RecentPoint[] {
    return this.#points
  }

  get spanMs(): number {
    return SPAN_MS
  }
}
