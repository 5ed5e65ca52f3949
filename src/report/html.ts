/** A report as one HTML file: opens from disk, asks the network for nothing. */
import { formatBytes, formatDuration, formatFigure, formatPercent, formatWhole, NOT_AVAILABLE } from '../core/format.ts'
import type { Reading } from '../core/model.ts'
import { REPORT_SCRIPT } from './html-script.ts'
import { REPORT_STYLE, SERIES_COLORS } from './html-style.ts'
import { escapeHtml, utcTime } from './html-text.ts'
import { oomSection } from './oom-html.ts'
import type { ReportChart } from './training-charts.ts'
import type { Summary, SummaryFinding, SummaryGpu, SummaryRun } from './training-summary.ts'
import {
  betterLoss,
  energyText,
  gpuNames,
  gpuTimeFigure,
  lastMessage,
  oomRunName,
  outcomeText,
  priceText,
  runEnding,
} from './training-text.ts'

export interface HtmlReport {
  readonly summary: Summary
  readonly charts: readonly ReportChart[]
  /** Middle of each bucket, epoch ms. */
  readonly times: readonly number[]
  readonly bucketMs: number
  readonly generatedAt: number
  readonly version: string
  /** The SDK's last words as it sent them, where there are any. */
  readonly lastReport: Readonly<Record<string, unknown>> | null
}

/** Nothing is loaded from anywhere; only what is inside runs. */
const POLICY =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

export function htmlReport(report: HtmlReport): string {
  const { summary } = report
  const message = lastMessage(summary)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<title>${escapeHtml(summary.title)} · gpuwarden</title>
<style>${REPORT_STYLE}</style>
</head>
<body>
<main>
<header><h1>${escapeHtml(summary.title)}</h1>${badge(summary)}<span class="faint">${timeSpan(summary)}</span><button id="theme" type="button">light / dark</button></header>
${message === null ? '' : `<pre>${escapeHtml(message)}</pre>`}
${summary.notes.map((note) => `<p class="note">${escapeHtml(note)}</p>`).join('')}
${tiles(summary)}
${lastWords(report)}
${runTable(summary.runs)}
${gpuTable(summary.gpus)}
${findingTable(summary.findings)}
<h2>Over time <span class="faint" id="zoomed">drag to zoom</span></h2>
<noscript>The charts need JavaScript; the tables above do not.</noscript>
<div id="charts"></div>
<p class="faint">gpuwarden ${escapeHtml(report.version)}, ${utcTime(report.generatedAt)}. Times are UTC in the tables and your own in the charts. Bands show the least and the most within ${formatFigure(report.bucketMs / 1000)} s.</p>
</main>
<div id="tip"></div>
<script type="application/json" id="data">${chartData(report)}</script>
<script>${REPORT_SCRIPT}</script>
</body>
</html>
`
}

/** JSON inside a script element: no end tag may be read into it. Five digits are more than a screen shows. */
function chartData({ summary, charts, times, bucketMs }: HtmlReport): string {
  const findings = summary.findings.map(({ at, severity, detector, message }) => ({ at, severity, detector, message }))
  const to = summary.to > summary.from ? summary.to : summary.from + 1000
  const data = { from: summary.from, to, width: bucketMs, colors: SERIES_COLORS, times, findings, charts: charts.map(rounded) }
  return JSON.stringify(data).replaceAll('<', '\\u003c')
}

function rounded(chart: ReportChart): ReportChart {
  const round = (values: readonly Reading[]) => values.map((value) => (value === null ? null : Number(value.toPrecision(5))))
  return {
    ...chart,
    series: chart.series.map((series) => ({
      ...series,
      values: round(series.values),
      ...(series.min && series.max ? { min: round(series.min), max: round(series.max) } : {}),
    })),
  }
}

function badge({ outcome }: Summary): string {
  if (outcome === null) return ''
  return `<span class="badge${outcome === 'success' ? '' : ' bad'}">${escapeHtml(outcomeText(outcome))}</span>`
}

/** One day is said once. */
function timeSpan({ from, to }: Summary): string {
  const [start, end] = [utcTime(from), utcTime(to)]
  return `${start} – ${start.slice(0, 10) === end.slice(0, 10) ? end.slice(11) : end} UTC`
}

function lastWords({ summary, lastReport }: HtmlReport): string {
  if (summary.outOfMemory) return oomSection(summary.outOfMemory, lastReport, oomRunName(summary))
  if (lastReport === null) return ''
  return `<h2>Last report before the end</h2><details><summary>All that was sent</summary><pre>${escapeHtml(JSON.stringify(lastReport, null, 2))}</pre></details>`
}

function tiles({ from, to, training, gpus, gpuHours, energyKilowattHours, cost }: Summary): string {
  const entries: [string, string, string][] = [['duration', formatDuration(to - from), '']]
  if (training && training.steps > 0) {
    entries.push([
      'steps',
      String(training.steps),
      training.stepsPerSecond === null ? '' : `${formatFigure(training.stepsPerSecond)} per second`,
    ])
    if (training.throughputPerSecond !== null)
      entries.push(['throughput', formatFigure(training.throughputPerSecond), 'samples per second'])
    const best = betterLoss(training.loss, training.bestLoss)
    if (training.loss !== null) entries.push(['last loss', formatFigure(training.loss), best === null ? '' : `best ${best}`])
  }
  if (gpus.length > 0) entries.push(['GPU time', gpuTimeFigure(gpuHours), gpuNames(gpus)])
  if (energyKilowattHours !== null) entries.push(['energy', energyText(energyKilowattHours), ''])
  if (cost) entries.push(['cost', `${cost.isEstimate ? 'about ' : ''}$${cost.amount.toFixed(2)}`, priceText(cost)])
  const tile = ([name, value, detail]: [string, string, string]) =>
    `<div class="tile"><span class="faint">${name}</span><b>${escapeHtml(value)}</b><span class="faint">${escapeHtml(detail)}</span></div>`
  return `<div class="tiles">${entries.map(tile).join('')}</div>`
}

const MOST_ROWS = 200

function runTable(runs: readonly SummaryRun[]): string {
  if (runs.length === 0) return ''
  const rows = runs.slice(-MOST_ROWS).map(({ id, name, from, to, outcome }) => {
    const tone = outcome === null || outcome === 'success' ? '' : ' class="critical"'
    const duration = to === null ? '' : formatDuration(to - from)
    return `<tr data-at="${from}"><td>${escapeHtml(name)}</td><td${tone}>${escapeHtml(runEnding(outcome))}</td><td>${utcTime(from)}</td><td>${duration}</td><td class="faint">${escapeHtml(id)}</td></tr>`
  })
  return `<h2>Runs</h2><div class="scroll"><table class="figures"><tr><th>run</th><th>ending</th><th>started</th><th>duration</th><th>id</th></tr>${rows.join('')}</table></div>`
}

function gpuTable(gpus: readonly SummaryGpu[]): string {
  if (gpus.length === 0) return ''
  const head = ['GPU', 'name', 'memory peak', 'mean', 'of', 'utilisation', 'tensor cores', 'power', 'temperature', 'energy']
  const rows = gpus.map(({ label, name, memoryTotalBytes, use }) => [
    label,
    name ?? 'unknown',
    formatBytes(use.peakMemoryUsedBytes),
    formatBytes(use.meanMemoryUsedBytes),
    formatBytes(memoryTotalBytes),
    formatPercent(use.meanUtilizationRatio),
    formatPercent(use.meanTensorActiveRatio),
    `${formatWhole(use.meanPowerWatts, 'W')} (up to ${formatWhole(use.peakPowerWatts, 'W')})`,
    `up to ${formatWhole(use.peakTemperatureCelsius, '°C')}`,
    use.energyJoules === null ? NOT_AVAILABLE : energyText(use.energyJoules / 3.6e6),
  ])
  const cells = (tag: 'th' | 'td', row: readonly string[]) =>
    `<tr>${row.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join('')}</tr>`
  return `<h2>GPUs</h2><div class="scroll"><table class="figures">${cells('th', head)}${rows.map((row) => cells('td', row)).join('')}</table></div>`
}

function findingTable(findings: readonly SummaryFinding[]): string {
  if (findings.length === 0) return '<h2>Findings</h2><p>None.</p>'
  const rows = findings.slice(0, MOST_ROWS).map((finding) => {
    const items = finding.advice.map((one) => `<li>${escapeHtml(one)}</li>`).join('')
    const advice = items === '' ? '' : `<ul class="faint">${items}</ul>`
    const until = finding.until === null ? '' : ` – ${utcTime(finding.until).slice(11)}`
    const gpu = finding.gpuIndex === null ? '' : `GPU ${finding.gpuIndex}`
    return `<tr data-at="${finding.at}"><td>${utcTime(finding.at)}${until}</td><td class="${finding.severity}">${finding.severity}</td><td>${escapeHtml(finding.detector)}</td><td>${gpu}</td><td>${escapeHtml(finding.message)}${advice}</td></tr>`
  })
  const more = findings.length > MOST_ROWS ? `<p class="faint">… and ${findings.length - MOST_ROWS} more.</p>` : ''
  return `<h2>Findings</h2><div class="scroll"><table class="findings"><tr><th>when (UTC)</th><th>severity</th><th>detector</th><th>GPU</th><th>what</th></tr>${rows.join('')}</table></div>${more}`
}
