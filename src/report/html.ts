/** The report of a run or a recording as one HTML file. */
import { formatBytes, formatDuration, formatFigure, formatPercent, formatWhole, NOT_AVAILABLE } from '../core/format.ts'
import type { Hyperparameter, Hyperparameters } from '../core/hyperparameters.ts'
import type { ReportChart, ReportMark, ReportPageData } from '../core/report-page.ts'
import { findingMarks, findingTable, MOST_ROWS } from './finding-html.ts'
import { chartPlaces, htmlPage, NO_SCRIPT } from './html-page.ts'
import { escapeHtml, tableHtml, timeHtml } from './html-text.ts'
import { layerTable } from './layer-html.ts'
import { oomSection } from './oom-html.ts'
import { phasesText } from './phases-text.ts'
import { dollarsText, goodputText, joulesText } from './run-figures.ts'
import { rankTable } from './training-ranks.ts'
import type { Summary, SummaryGpu, SummaryRun } from './training-summary.ts'
import {
  betterLoss,
  energyText,
  gpuNames,
  gpuTimeFigure,
  lastMessage,
  leakText,
  oomRunName,
  outcomeText,
  priceText,
  runEnding,
} from './training-text.ts'

export interface HtmlReport {
  readonly summary: Summary
  readonly charts: readonly ReportChart[]
  /** Middle of each bucket. */
  readonly times: ReportPageData['times']
  readonly generatedAt: number
  readonly version: string
  /** The last report that the SDK sent, if any. */
  readonly lastReport: Readonly<Record<string, unknown>> | null
}

export function htmlReport(report: HtmlReport): string {
  const { summary, charts, times } = report
  const message = lastMessage(summary)
  return htmlPage({
    title: summary.title,
    head: `${badge(summary)}<span class="faint">${timeHtml(summary.from, summary.to)}</span>`,
    body: `${message === null ? '' : `<pre>${escapeHtml(message)}</pre>`}
${summary.notes.map((note) => `<p class="note">${escapeHtml(note)}</p>`).join('')}
${summary.leaks.map((line) => `<p class="note">Leak: ${escapeHtml(leakText(line))}</p>`).join('')}
${tiles(summary)}
${lastWords(report)}
${runTable(summary.runs)}
${settings(summary.hyperparameters)}
${layerTable(summary.layers)}
${gpuTable(summary.gpus)}
${rankTable(summary.training?.ranks ?? [])}
${findingTable(summary.findings)}
<h2 id="charts">Over time <span class="faint" id="zoomed"></span></h2>
${NO_SCRIPT}
${chartPlaces(charts.map((_, position) => position))}`,
    notes: `Bands show the minimum and maximum within ${formatFigure(times.stepMs / 1000)} s.`,
    version: report.version,
    generatedAt: report.generatedAt,
    data: { from: summary.from, to: summary.to, times, marks: [...findingMarks(summary.findings), ...endingMarks(summary)], charts },
  })
}

/** Where runs ended that no finding is about: the death of a run is one. */
function endingMarks({ runId, title, to, outcome, runs, findings }: Summary): readonly ReportMark[] {
  const died = new Set(findings.flatMap(({ detector, run }) => (detector === 'run_died' ? [run] : [])))
  const own = runId === null ? [] : [{ id: runId, name: title, to, outcome }]
  return [...own, ...runs].flatMap(({ id, name, to: at, outcome: how }) =>
    at === null || how === null || died.has(id)
      ? []
      : [{ at, severity: 'info' as const, detector: name, message: outcomeText(how), gpuIndex: null }],
  )
}

function badge({ outcome }: Summary): string {
  if (outcome === null) return ''
  return `<span class="badge${outcome === 'success' ? '' : ' bad'}">${escapeHtml(outcomeText(outcome))}</span>`
}

function lastWords({ summary, lastReport }: HtmlReport): string {
  if (summary.outOfMemory) return oomSection(summary.outOfMemory, lastReport, oomRunName(summary))
  if (lastReport === null) return ''
  return `<h2>Last report before the end</h2><details><summary>Everything that was sent</summary><pre>${escapeHtml(JSON.stringify(lastReport, null, 2))}</pre></details>`
}

function tiles({ from, to, training, gpus, gpuHours, energyKilowattHours, cost, figures }: Summary): string {
  const entries: [string, string, string][] = [['duration', formatDuration(to - from), '']]
  if (training && training.steps > 0) {
    entries.push([
      'steps',
      String(training.steps),
      training.stepsPerSecond === null ? '' : `${formatFigure(training.stepsPerSecond)} per second`,
    ])
    if (training.throughputPerSecond !== null)
      entries.push(['throughput', formatFigure(training.throughputPerSecond), 'samples per second'])
    if (training.tokensPerSecond !== null) entries.push(['tokens', formatFigure(training.tokensPerSecond), 'per second'])
    const best = betterLoss(training.loss, training.bestLoss)
    if (training.loss !== null) entries.push(['last loss', formatFigure(training.loss), best === null ? '' : `best ${best}`])
  }
  const phases = training?.phaseShares ?? []
  const [largest] = [...phases].sort((a, b) => b.ratio - a.ratio)
  if (largest) entries.push(['phases', `${formatPercent(largest.ratio)} ${largest.phase}`, phasesText(phases)])
  if (figures.mfuRatio !== null) entries.push(['MFU', formatPercent(figures.mfuRatio), 'of what the GPU can compute'])
  if (training?.time) entries.push(['goodput', formatPercent(training.time.goodputRatio), goodputText(training.time)])
  if (gpus.length > 0) entries.push(['GPU time', gpuTimeFigure(gpuHours), gpuNames(gpus)])
  if (energyKilowattHours !== null)
    entries.push(['energy', energyText(energyKilowattHours), figures.joulesPer1000 ? joulesText(figures.joulesPer1000) : ''])
  if (cost)
    entries.push([
      'cost',
      `${cost.isEstimate ? 'about ' : ''}$${cost.amount.toFixed(2)}`,
      [priceText(cost), figures.dollarsPer1000 && dollarsText(figures.dollarsPer1000)].filter(Boolean).join('; '),
    ])
  const tile = ([name, value, detail]: [string, string, string]) =>
    `<div class="tile"><span class="faint">${name}</span><b>${escapeHtml(value)}</b><span class="faint">${escapeHtml(detail)}</span></div>`
  return `<div class="tiles">${entries.map(tile).join('')}</div>`
}

function runTable(runs: readonly SummaryRun[]): string {
  if (runs.length === 0) return ''
  const rows = runs.slice(-MOST_ROWS).map(({ id, name, from, to, outcome }) => {
    const tone = outcome === null || outcome === 'success' ? '' : ' class="tone-critical"'
    const duration = to === null ? '' : formatDuration(to - from)
    return `<tr data-at="${from}"><td>${escapeHtml(name)}</td><td${tone}>${escapeHtml(runEnding(outcome))}</td><td>${timeHtml(from)}</td><td>${duration}</td><td class="faint">${escapeHtml(id)}</td></tr>`
  })
  return `<h2>Runs</h2>${tableHtml('figures', ['run', 'ending', 'started', 'duration', 'id'], rows)}`
}

function settings(hyperparameters: Hyperparameters): string {
  const all = Object.entries(hyperparameters)
  if (all.length === 0) return ''
  const entry = ([name, value]: [string, Hyperparameter]) => `<dt>${escapeHtml(name)}</dt><dd>${escapeHtml(String(value))}</dd>`
  return `<details><summary>Hyperparameters (${all.length})</summary><dl>${all.map(entry).join('')}</dl></details>`
}

function gpuTable(gpus: readonly SummaryGpu[]): string {
  if (gpus.length === 0) return ''
  const head = ['GPU', 'name', 'memory peak', 'mean', 'of', 'utilization', 'tensor cores', 'power', 'temperature', 'energy']
  const rows = gpus.map(({ label, name, memoryTotalBytes, use, peakProcessBytes }) => [
    label,
    name ?? 'unknown',
    formatBytes(peakProcessBytes ?? use.peakMemoryUsedBytes),
    formatBytes(use.meanMemoryUsedBytes),
    formatBytes(memoryTotalBytes),
    formatPercent(use.meanUtilizationRatio),
    formatPercent(use.meanTensorActiveRatio),
    `${formatWhole(use.meanPowerWatts, 'W')} (up to ${formatWhole(use.peakPowerWatts, 'W')})`,
    `up to ${formatWhole(use.peakTemperatureCelsius, '°C')}`,
    use.energyJoules === null ? NOT_AVAILABLE : energyText(use.energyJoules / 3.6e6),
  ])
  const cells = (row: readonly string[]) => `<tr>${row.map((cell) => `<td>${escapeHtml(cell)}</td>`).join('')}</tr>`
  return `<h2>GPUs</h2>${tableHtml('figures', head, rows.map(cells))}`
}
