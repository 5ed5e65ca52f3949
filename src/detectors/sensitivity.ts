/** One setting between caution and speed: how much evidence the detectors that weigh evidence ask for. */
import { THRESHOLDS } from './thresholds.ts'

export const SENSITIVITIES = ['low', 'normal', 'high'] as const
export type Sensitivity = (typeof SENSITIVITIES)[number]

/** Factor on the evidence that is needed; docs/accuracy.md has what each gives. */
const CAUTION: Readonly<Record<Sensitivity, number>> = { low: 1.4, normal: 1, high: 0.7 }

/** Options of the detectors that it moves; limits that have settings of their own stay as they are set. */
export function sensitivityOptions(sensitivity: Sensitivity) {
  const caution = CAUTION[sensitivity]
  const { lossSpike, lossPlateau, straggler, change } = THRESHOLDS
  return {
    leak: { caution },
    oom: { caution },
    loss_spike: { z: caution * lossSpike.z, cusumLimit: caution * lossSpike.cusumLimit },
    loss_plateau: { minImprovementRatio: lossPlateau.minImprovementRatio / caution },
    straggler: { ratio: straggler.ratio ** caution, cusumLimit: caution * straggler.cusumLimit },
    change: { inform: caution * change.inform, alert: caution * change.alert },
  }
}
