/** What only rules need, because they see less often than the agent does. Every other figure is in the table of the detectors. */

/** From the memory of the last `windowSeconds`, where it will be in `aheadSeconds`. */
export const FORECAST = { windowSeconds: 900, aheadSeconds: 3600 } as const

/** A run cannot be called stalled sooner: a scrape is up to 15 s old, and so is the evaluation. */
export const SHORTEST_STALL_SECONDS = 60

/** How long a figure of training, seen at most once per scrape, must stand out. */
export const TRAINING_HOLD_SECONDS = 60
export const STRAGGLER_HOLD_SECONDS = 300

/** The two halves of time over which losses are compared. */
export const PLATEAU_HALF_SECONDS = 3600

/** How long the agent may be away before somebody is told, and for how long that is said. */
export const ABSENCE = { holdSeconds: 60, memorySeconds: 3600 } as const

/** What trainers call the time spent waiting for other ranks; the same words as in the straggler detector. */
export const WAIT_PHASES = ['wait', 'sync', 'communication', 'comm', 'allreduce', 'all_reduce', 'barrier'] as const
