/** Which part of a run its charts show. */
import type { RunCurve } from './curve.ts'
import type { RunAxis } from './run-marks.ts'

export interface Span {
  readonly from: number
  readonly to: number
}

const LAST_MS = 5 * 60_000

/** All of it. `end`: of the run, or the present. */
export function wholeSpan(axis: RunAxis, { at, steps }: RunCurve, startedAt: number | null, end: number): Span {
  if (axis === 'step') return { from: Math.min(...steps), to: Math.max(1, ...steps) }
  return { from: Math.min(startedAt ?? Number.POSITIVE_INFINITY, at[0] ?? end - 60_000), to: Math.max(end, at.at(-1) ?? 0) }
}

/** Its last five minutes, where most of what explains an end is; null: it was hardly longer. */
export function lastSpan(axis: RunAxis, curve: RunCurve, startedAt: number | null, end: number): Span | null {
  const time = wholeSpan('time', curve, startedAt, end)
  const from = time.to - LAST_MS
  if (time.from >= from - LAST_MS / 10) return null
  if (axis === 'time') return { from, to: time.to }
  const first = curve.at.findIndex((at) => at >= from)
  const { to } = wholeSpan('step', curve, startedAt, end)
  const step = curve.steps[first]
  return step === undefined || step >= to ? null : { from: step, to }
}
