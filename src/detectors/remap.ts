/** Failing memory rows: some wait for a reset to be remapped, some cannot be. */
import type { DetectorKind } from '../core/detector-contract.ts'
import type { GpuSample, Severity } from '../core/model.ts'
import { NO_FINDINGS } from './finding.ts'
import { gpuName, subjectOfGpu, watchGpus } from './gpu-watch.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'

interface RemapState {
  failed: boolean
  pending: boolean
}

export const remap: DetectorKind<Thresholds<'remap'>> = {
  name: 'remap',
  about: 'Memory rows of a GPU are failing: they wait for a reset to be remapped, or cannot be remapped.',
  severities: ['warning', 'critical'],
  inputs: ['gpu', 'device'],
  findsAgainSeconds: 60,
  charts: [{ of: 'gpu', field: 'remappedUncorrectableRows', title: 'Rows remapped after uncorrectable errors', unit: 'count' }],
  defaults: THRESHOLDS.remap,
  create: (options) =>
    watchGpus<RemapState>('remap', {
      initial: () => ({ failed: false, pending: false }),
      sample(gpu, sample, _processes, book) {
        const { state } = gpu
        // Where a reading is missing, the last one counts.
        if (sample.remapFailure !== null) state.failed = sample.remapFailure > 0
        if (sample.remapPending !== null || sample.retiredPagesPending !== null)
          state.pending = (sample.remapPending ?? 0) > 0 || (sample.retiredPagesPending ?? 0) > 0
        const severity: Severity | null = state.failed ? 'critical' : state.pending ? 'warning' : null
        if (severity === null && book.size === 0) return NO_FINDINGS
        const subject = subjectOfGpu(gpu)
        const key = book.key(subject)
        if (severity === null) return book.resolve(key, sample.at, `No memory rows of ${gpuName(gpu)} wait for remapping anymore.`)
        if (gpu.time.ms < options.settleSeconds * 1000 || !book.due(key, sample.at, severity)) return NO_FINDINGS
        return book.raise(subject, sample.at, {
          severity,
          message: state.failed
            ? `${gpuName(gpu)} could not remap a failing memory row: the card has no spare rows left and must be replaced.`
            : `${gpuName(gpu)} has failing memory rows that will be remapped at its next reset.`,
          evidence: evidenceOf(sample),
          confidence: 1,
          advice: state.failed
            ? ['Stop using this GPU and replace it.']
            : ['Reset the GPU when it is free (nvidia-smi --gpu-reset), or reboot.'],
        })
      },
    }),
}

function evidenceOf(sample: GpuSample) {
  return {
    remap_failure: sample.remapFailure,
    remap_pending: sample.remapPending,
    retired_pages_pending: sample.retiredPagesPending,
    remapped_correctable_rows: sample.remappedCorrectableRows,
    remapped_uncorrectable_rows: sample.remappedUncorrectableRows,
  }
}
