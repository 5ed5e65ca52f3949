import type { Finding, Run } from '../../src/core/model.ts'
import type { ChartMark } from './chart/time-chart.tsx'

/** Where runs ended that nothing was found about: the end of a run that died is a finding. */
export function endingMarks(ended: Iterable<Run>, list: readonly Finding[]): readonly ChartMark[] {
  const died = new Set(list.flatMap(({ detector, subject }) => (detector === 'run_died' ? [subject.run] : [])))
  return [...ended].flatMap(({ id, name, endedAt, outcome }) =>
    endedAt === null || died.has(id)
      ? []
      : [{ at: endedAt, label: `${name} ${outcome === 'success' ? 'finished' : 'ended'}`, tone: 'muted' as const }],
  )
}
