/** Time as a detector saw it pass: never runs back, so that a clock change, a suspend or late samples neither raise nor clear a finding. */
export interface ObservedTime {
  /** Timestamp of the last sample that counted. */
  lastAt: number
  /** Observed ms since the first sample. */
  ms: number
}

/** A sample up to this much older than the last one came late; an older one means that the clock was set back. */
const LATE_MS = 5000
/** A longer gap was not observed and counts for nothing. */
const HOLE_MS = 300_000

export function observedTime(): ObservedTime {
  return { lastAt: -1, ms: 0 }
}

/** Advances to a sample's timestamp; false: the sample came late and must not be used. */
export function advance(time: ObservedTime, at: number, holeMs = HOLE_MS): boolean {
  if (time.lastAt < 0) {
    time.lastAt = at
    return true
  }
  const passed = at - time.lastAt
  if (passed < 0 && passed >= -LATE_MS) return false
  if (passed > 0 && passed <= holeMs) time.ms += passed
  time.lastAt = at
  return true
}
