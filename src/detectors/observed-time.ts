/**
 * Time as a detector lived it: it advances by what passed between samples and never runs back,
 * so that a clock that is set, a suspended machine or samples out of order neither raise nor clear an alarm.
 */
export interface ObservedTime {
  /** Time stamp of the last sample that counted. */
  lastAt: number
  /** Observed ms since the first sample. */
  ms: number
}

/** A sample this much older than the one before it came late; one older still means that the clock was set back. */
const LATE_MS = 5000
/** A hole longer than this was not observed, and counts for nothing. */
const HOLE_MS = 300_000

export function observedTime(): ObservedTime {
  return { lastAt: -1, ms: 0 }
}

/** Moves on to a sample's time stamp; false: the sample came late and is not to be used. */
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
