import type { RunAnswer } from '../../answers.ts'
import { ask, inWords } from '../../api.ts'
import { stepLog } from '../../live/step-log.ts'
import { runs } from '../../live/store.ts'
import { curveOfSteps, EMPTY_CURVE, type RunCurve } from './curve.ts'
import { loadCurve, runPath } from './use-run.ts'

export interface Compared {
  readonly id: string
  /** null of a run that is only heard of in the stream. */
  readonly run: RunAnswer | null
  readonly curve: RunCurve
  readonly fault: string | null
}

export async function loadCompared(id: string, signal: AbortSignal): Promise<Compared> {
  if (!runs.peek().has(id)) {
    const steps = stepLog.of(id, stepLog.ranksOf(id)[0] ?? 0)
    return { id, run: null, curve: curveOfSteps(steps), fault: steps.length === 0 ? `There is no run ${id} here.` : null }
  }
  try {
    const [run, { curve }] = await Promise.all([ask<RunAnswer>(runPath(id), {}, { signal }), loadCurve(id, null, signal)])
    return { id, run, curve, fault: null }
  } catch (error) {
    return { id, run: null, curve: EMPTY_CURVE, fault: `${id}: ${inWords(error)}` }
  }
}

export function nameOf({ run, id }: Compared): string {
  return run?.name ?? id
}
