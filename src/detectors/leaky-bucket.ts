/** A bucket that fills while a bit is set and drains while it is not: reasons flicker, and a held one must not be missed for that. */
export interface Bucket {
  lastMs: number
  filledMs: number
}

export function bucket(): Bucket {
  return { lastMs: -1, filledMs: 0 }
}

/** Returns how full it is, in ms; at most twice `holdMs`. */
export function pour(state: Bucket, set: boolean, nowMs: number, holdMs: number): number {
  const passed = state.lastMs < 0 ? 0 : nowMs - state.lastMs
  state.lastMs = nowMs
  state.filledMs = Math.max(0, Math.min(2 * holdMs, state.filledMs + (set ? passed : -passed)))
  return state.filledMs
}
