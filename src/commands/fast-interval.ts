/** How often the memory tools look unless told otherwise: more often than the agent. */
export const FAST_INTERVAL_SECONDS = 0.1
