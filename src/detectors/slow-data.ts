/** The training waits for data. */
import type { RunLoader } from '../core/model.ts'
import { STEP_TIME_CHART, UTILIZATION_CHART } from './charts.ts'
import { phaseShare } from './phase-share.ts'
import { THRESHOLDS } from './thresholds.ts'

/** So many that the loader is as fast as the rest of the step. A loader that keeps the step waiting makes one batch per step, with all its workers. */
function moreWorkers(ratio: number, loader: RunLoader | null): string {
  const rest = 'decode and shuffle the data in advance'
  if (loader === null || !(ratio < 1)) return `Use more data loader workers, pinned memory and prefetching, or ${rest}.`
  const { workers, isPinned, cpus } = loader
  const wanted = Math.ceil((Math.max(1, workers) * ratio) / (1 - ratio))
  const room = cpus === null ? wanted : cpus - workers
  const pinned = isPinned ? '' : ' or pinned memory'
  if (room < 1) return `All ${cpus} CPUs load data already (num_workers=${workers})${isPinned ? '' : ': use pinned memory'}: ${rest}.`
  const more = Math.min(wanted, room)
  const enough = more < wanted ? `; this machine has no CPUs for the ${wanted} that it takes` : ''
  return `${more} more data loader ${more === 1 ? 'worker' : 'workers'}${pinned} would help (num_workers=${workers + more} instead of ${workers}${enough}), or ${rest}.`
}

export const slowData = phaseShare({
  name: 'slow_data',
  about: 'A run spends a large part of each step waiting for data.',
  phase: 'data',
  says: (run, share, seconds) => `Run ${run} is input-bound: ${share} of each step waits for data (${seconds}).`,
  over: (run, share) => `Run ${run} waits for data only ${share} of the time now.`,
  advice: (ratio, loader) => [moreWorkers(ratio, loader)],
  charts: [UTILIZATION_CHART, STEP_TIME_CHART],
  defaults: THRESHOLDS.slowData,
})
