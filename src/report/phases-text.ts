import { formatPercent } from '../core/format.ts'
import type { PhaseShare } from '../core/step-phases.ts'

/** `data 12%, forward 31%, backward 45%, not attributed 12%`; what is below one percent is left out. */
export function phasesText(shares: readonly PhaseShare[]): string {
  const shown = shares.filter(({ ratio }) => ratio >= 0.005)
  return shown.map(({ phase, ratio }) => `${phase} ${formatPercent(ratio)}`).join(', ')
}
