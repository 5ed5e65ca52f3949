/** How long a condition has held, in observed time. Plain data, so that it survives a snapshot. */
export interface Span {
  /** Observed ms when it began to hold; -1 while it does not. */
  from: number
}

export function span(): Span {
  return { from: -1 }
}

/** Notes whether the condition holds now; returns for how many ms it has, or -1. */
export function held(state: Span, condition: boolean, nowMs: number): number {
  if (!condition) {
    state.from = -1
    return -1
  }
  if (state.from < 0) state.from = nowMs
  return nowMs - state.from
}
