import type { Finding, Run } from '../../../../src/core/model.ts'
import type { ChartMark } from '../../chart/time-chart.tsx'
import { endingMarks } from '../../ending-marks.ts'
import { severityTone } from '../../words.ts'
import type { RunCurve } from './curve.ts'

export type RunAxis = 'time' | 'step'

/** Where each began. Over steps: at the step that the evidence names, else at the first step after it. */
export function marksOfFindings(
  findings: readonly Finding[],
  axis: RunAxis,
  curve: RunCurve,
  run: Run | null = null,
): readonly ChartMark[] {
  const ends = run === null ? [] : endingMarks([run], findings)
  return findings
    .flatMap(({ since, detector, message, severity, evidence }) => {
      const at = axis === 'time' ? since : typeof evidence.step === 'number' ? evidence.step : stepAt(curve, since)
      return at === null ? [] : [{ at, label: `${detector}: ${message}`, tone: severityTone(severity) }]
    })
    .concat(ends.flatMap((mark) => (axis === 'time' ? mark : { ...mark, at: curve.steps.at(-1) ?? 0 })))
    .sort((a, b) => a.at - b.at)
}

function stepAt({ at, steps }: RunCurve, moment: number): number | null {
  const index = at.findIndex((time) => time >= moment)
  return (index < 0 ? steps.at(-1) : steps[index]) ?? null
}

/** Of stored and active findings, each one once; the newer one counts. */
export function joinedFindings(past: readonly Finding[], active: readonly Finding[]): readonly Finding[] {
  const known = new Map(past.map((finding) => [`${finding.fingerprint} ${finding.since}`, finding]))
  for (const finding of active) known.set(`${finding.fingerprint} ${finding.since}`, finding)
  return [...known.values()].sort((a, b) => b.since - a.since)
}
