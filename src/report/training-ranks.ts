/** The ranks of a run side by side, in a report. */
import { formatBytes, formatCount, formatPercent, formatSeconds, formatWhole, NOT_AVAILABLE } from '../core/format.ts'
import type { Reading } from '../core/model.ts'
import type { PhaseShare } from '../core/step-phases.ts'
import { escapeHtml, tableHtml } from './html-text.ts'
import { phasesText } from './phases-text.ts'

export interface SummaryRank {
  readonly rank: number
  readonly steps: number
  readonly lastStep: number
  readonly meanStepSeconds: Reading
  readonly phaseShares: readonly PhaseShare[]
  readonly memoryPeakBytes: Reading
  /** Label of its GPU; null: it is not known which. */
  readonly gpu: string | null
  readonly peakTemperatureCelsius: Reading
  /** How much of the time heat or protection slowed its GPU down. */
  readonly throttledRatio: Reading
  /** Host memory of its process. */
  readonly peakResidentBytes: Reading
}

const MOST_ROWS = 64

/** One line each; none where there is one rank only. */
export function rankRows(ranks: readonly SummaryRank[]): readonly (readonly [string, string])[] {
  if (ranks.length < 2) return []
  const rows = ranks.slice(0, MOST_ROWS).map((rank): [string, string] => [`rank ${rank.rank}`, rankText(rank)])
  return ranks.length > MOST_ROWS ? [...rows, ['', `… and ${formatCount(ranks.length - MOST_ROWS, 'more rank')}`]] : rows
}

function rankText(rank: SummaryRank): string {
  const parts = [`step ${rank.lastStep}`]
  if (rank.meanStepSeconds !== null) parts.push(`${formatSeconds(rank.meanStepSeconds)} a step`)
  if (rank.phaseShares.length > 0) parts.push(phasesText(rank.phaseShares))
  if (rank.memoryPeakBytes !== null) parts.push(`memory peak ${formatBytes(rank.memoryPeakBytes)}`)
  if (rank.gpu !== null) parts.push(`GPU ${rank.gpu}`)
  if (rank.peakTemperatureCelsius !== null) parts.push(`up to ${formatWhole(rank.peakTemperatureCelsius, '°C')}`)
  if (rank.throttledRatio !== null && rank.throttledRatio > 0) parts.push(`slowed down ${formatPercent(rank.throttledRatio)} of the time`)
  if (rank.peakResidentBytes !== null) parts.push(`host memory ${formatBytes(rank.peakResidentBytes)}`)
  return parts.join(', ')
}

export function rankTable(ranks: readonly SummaryRank[]): string {
  if (ranks.length < 2) return ''
  const head = ['rank', 'GPU', 'step', 'step time', 'phases', 'memory peak', 'temperature', 'slowed down', 'host memory']
  const rows = ranks
    .slice(0, MOST_ROWS)
    .map((rank) => [
      String(rank.rank),
      rank.gpu ?? NOT_AVAILABLE,
      String(rank.lastStep),
      formatSeconds(rank.meanStepSeconds),
      phasesText(rank.phaseShares) || NOT_AVAILABLE,
      formatBytes(rank.memoryPeakBytes),
      formatWhole(rank.peakTemperatureCelsius, '°C'),
      formatPercent(rank.throttledRatio),
      formatBytes(rank.peakResidentBytes),
    ])
  const cells = (row: readonly string[]) => `<tr>${row.map((cell) => `<td>${escapeHtml(cell)}</td>`).join('')}</tr>`
  return `<h2>Ranks</h2>${tableHtml('figures', head, rows.map(cells))}`
}
