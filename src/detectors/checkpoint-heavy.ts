/** Checkpoints take too much of a run's time. */
import { phaseShare } from './phase-share.ts'
import { THRESHOLDS } from './thresholds.ts'

export const checkpointHeavy = phaseShare({
  name: 'checkpoint_heavy',
  about: 'A run spends a large part of its time saving checkpoints.',
  phase: 'checkpoint',
  occasional: true,
  says: (run, share) => `Run ${run} spends ${share} of its time saving checkpoints.`,
  over: (run, share) => `Run ${run} spends only ${share} of its time saving checkpoints now.`,
  advice: () => ['Save less often, to a faster disk, or in the background (torch.distributed.checkpoint.async_save).'],
  defaults: THRESHOLDS.checkpointHeavy,
})
