/** Default interval of the memory tools: shorter than the agent's. */
export const FAST_INTERVAL_SECONDS = 0.1
