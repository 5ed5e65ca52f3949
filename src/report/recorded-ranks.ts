/** What a recording has of each rank: its steps, its process, and the GPU that process was on. */
import type { SummaryRank } from './training-ranks.ts'
import type { RecordedGpu, RecordedRank } from './training-recorded.ts'

/** `pidOf`: the process of a rank; the GPU is the one that process was seen on. */
export function ranksOf(
  ranks: readonly RecordedRank[],
  gpus: readonly RecordedGpu[],
  pidOf: (run: string, rank: number) => number | null,
): readonly SummaryRank[] {
  return [...ranks]
    .sort((a, b) => a.rank - b.rank)
    .map((one) => {
      const pid = pidOf(one.run, one.rank)
      const gpu = pid === null ? undefined : gpus.find(({ pids }) => pids.has(pid))
      const use = gpu?.use.summary()
      return {
        rank: one.rank,
        steps: one.steps,
        lastStep: one.lastStep,
        meanStepSeconds: one.secondsCount === 0 ? null : one.secondsSum / one.secondsCount,
        phaseShares: one.phases.shares(),
        memoryPeakBytes: one.peakAllocated,
        gpu: gpu?.label ?? null,
        peakTemperatureCelsius: use?.peakTemperatureCelsius ?? null,
        throttledRatio: use?.throttledRatio ?? null,
        peakResidentBytes: pid === null ? null : (gpu?.residentPeaks.get(pid) ?? null),
      }
    })
}
