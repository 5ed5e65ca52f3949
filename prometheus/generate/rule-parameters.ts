/** Figures that only rules need, because they see data less often than the agent. All others are the thresholds of the detectors. */

/** Extrapolates the last `windowSeconds` of memory by `aheadSeconds`. */
export const FORECAST = { windowSeconds: 900, aheadSeconds: 3600 } as const

/** No run counts as stalled sooner: the scrape and the evaluation can each be 15 s old. */
export const SHORTEST_STALL_SECONDS = 60

/** How long a training figure, seen once per scrape, must stay out of range. */
export const TRAINING_HOLD_SECONDS = 60
export const STRAGGLER_HOLD_SECONDS = 300

/** The two halves of time over which losses are compared. */
export const PLATEAU_HALF_SECONDS = 3600

/** How long the agent may be unreachable before the alert fires, and how long the alert lasts. */
export const ABSENCE = { holdSeconds: 60, memorySeconds: 3600 } as const

/** What trainers call the time spent waiting for other ranks; the same words as in the straggler detector. */
export const WAIT_PHASES = ['wait', 'sync', 'communication', 'comm', 'allreduce', 'all_reduce', 'barrier'] as const
