/** Evaluation takes too much of a run's time. */
import { phaseShare } from './phase-share.ts'
import { THRESHOLDS } from './thresholds.ts'

export const evalHeavy = phaseShare({
  name: 'eval_heavy',
  about: 'A run spends a large part of its time evaluating.',
  phase: 'evaluation',
  occasional: true,
  says: (run, share) => `Run ${run} spends ${share} of its time evaluating.`,
  over: (run, share) => `Run ${run} spends only ${share} of its time evaluating now.`,
  advice: () => ['Evaluate less often, on a part of the evaluation data, or with larger batches.'],
  defaults: THRESHOLDS.evalHeavy,
})
