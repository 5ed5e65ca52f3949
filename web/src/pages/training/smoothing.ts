/** Smoothing as people know it from training dashboards: an exponential moving average without the pull of its start. */
import type { Reading } from '../../../../src/core/model.ts'

/** `weight` 0: as it is; near 1: very smooth. Unknown and not finite stay gaps and do not count. */
export function smoothed(values: readonly Reading[], weight: number): Reading[] {
  let sum = 0
  let share = 0
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return null
    sum = sum * weight + (1 - weight) * value
    share = share * weight + (1 - weight)
    return sum / share
  })
}

export const MOST_SMOOTHING = 0.99

/** From an address; nonsense is no smoothing. */
export function parseSmoothing(text: string | undefined, usual: number): number {
  const weight = text === undefined || text === '' ? usual : Number(text)
  return Number.isFinite(weight) ? Math.min(MOST_SMOOTHING, Math.max(0, weight)) : usual
}
