/** The training waits for copies from the host to the GPU. */
import { phaseShare } from './phase-share.ts'
import { THRESHOLDS } from './thresholds.ts'

export const copyBound = phaseShare({
  name: 'copy_bound',
  about: 'A run spends a large part of each step copying data from the host to the GPU.',
  phase: 'copy',
  says: (run, share, seconds) => `Run ${run} is copy-bound: ${share} of each step copies data to the GPU (${seconds}).`,
  over: (run, share) => `Run ${run} copies data to the GPU only ${share} of the time now.`,
  advice: () => [
    'Use pin_memory=True in the data loader and .to(device, non_blocking=True), and send smaller types: uint8 images can become floats on the GPU.',
  ],
  defaults: THRESHOLDS.copyBound,
})
