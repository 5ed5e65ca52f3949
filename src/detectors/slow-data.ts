/** The training waits for data. */
import { STEP_TIME_CHART, UTILIZATION_CHART } from './charts.ts'
import { phaseShare } from './phase-share.ts'
import { THRESHOLDS } from './thresholds.ts'

export const slowData = phaseShare({
  name: 'slow_data',
  about: 'A run spends a large part of each step waiting for data.',
  phase: 'data',
  says: (run, share, seconds) => `Run ${run} is input-bound: ${share} of each step waits for data (${seconds}).`,
  over: (run, share) => `Run ${run} waits for data only ${share} of the time now.`,
  advice: ['Use more data loader workers, pinned memory and prefetching, or decode and shuffle the data in advance.'],
  charts: [UTILIZATION_CHART, STEP_TIME_CHART],
  defaults: THRESHOLDS.slowData,
})
