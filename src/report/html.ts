/** A report as one HTML file: opens from disk, asks the network for nothing. */
import { formatBytes, formatPercent, formatWhole, NOT_AVAILABLE } from '../format.ts'
import type { Reading } from '../model.ts'
import { REPORT_SCRIPT } from './html-script.ts'
import { REPORT_STYLE, SERIES_COLORS } from './html-style.ts'
import type { ReportChart } from './training-charts.ts'
import { costText, digits, gpuNames, outcomeText, type Summary, type SummaryGpu } from './training-summary.ts'

export interface HtmlReport {
  readonly summary: Summary
  readonly charts: readonly ReportChart[]
  /** Middle of each bucket, epoch ms. */
  readonly times: readonly number[]
  readonly bucketMs: number
  readonly generatedAt: number
  readonly version: string
  /** The SDK's last report of an out-of-memory, where there is one. */
  readonly lastReport: Readonly<Record<string, unknown>> | null
}

/** Nothing is loaded from anywhere; only what is inside runs. */
const POLICY =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

export function htmlReport(report: HtmlReport): string {
  const { summary } = report
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
<header><h1>${escapeHtml(summary.title)}</h1>${badge(summary)}<span class="faint">${utcTime(summary.from)} – ${utcTime(summary.to)}</span><button id="theme" type="button">light / dark</button></header>
${summary.message === null ? '' : `<pre>${escapeHtml(summary.message)}</pre>`}
${summary.notes.map((note) => `<p class="note">${escapeHtml(note)}</p>`).join('')}
${tiles(summary)}
${gpuTable(summary.gpus)}
${findingTable(summary)}
${report.lastReport === null ? '' : `<h2>Last report before the end</h2><pre>${escapeHtml(JSON.stringify(report.lastReport, null, 2))}</pre>`}
<h2>Over time <span class="faint" id="zoomed">drag to zoom</span></h2>
<noscript>The charts need JavaScript; the tables above do not.</noscript>
<div id="charts"></div>
<p class="faint">gpuwarden ${escapeHtml(report.version)}, ${utcTime(report.generatedAt)}. Times are UTC in the tables and your own in the charts. Bands show the least and the most within ${digits(report.bucketMs / 1000)} s.</p>
</main>
<div id="tip"></div>
<script type="application/json" id="data">${chartData(report)}</script>
<script>${REPORT_SCRIPT}</script>
</body>
</html>
`
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
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

function tiles({ from, to, training, gpus, gpuHours, energyKilowattHours, cost }: Summary): string {
  const seconds = (to - from) / 1000
  const entries: [string, string, string][] = [['duration', clockDuration(seconds), '']]
  if (training && training.steps > 0) {
    entries.push(['steps', String(training.steps), training.stepsPerSecond === null ? '' : `${digits(training.stepsPerSecond)} per second`])
    if (training.throughputPerSecond !== null) entries.push(['throughput', digits(training.throughputPerSecond), 'samples per second'])
    if (training.loss !== null)
      entries.push(['last loss', digits(training.loss), training.bestLoss === null ? '' : `best ${digits(training.bestLoss)}`])
  }
  if (gpus.length > 0) entries.push(['GPU hours', digits(gpuHours), gpuNames(gpus)])
  if (energyKilowattHours !== null) entries.push(['energy', `${digits(energyKilowattHours)} kWh`, ''])
  if (cost) entries.push(['cost', `$${cost.amount.toFixed(2)}`, costText(cost).replace(/^[^(]*/, '')])
  const tile = ([name, value, detail]: [string, string, string]) =>
    `<div class="tile"><span class="faint">${name}</span><b>${escapeHtml(value)}</b><span class="faint">${escapeHtml(detail)}</span></div>`
  return `<div class="tiles">${entries.map(tile).join('')}</div>`
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
    `${formatWhole(use.meanPowerWatts, ' W')} (up to ${formatWhole(use.peakPowerWatts, ' W')})`,
    `up to ${formatWhole(use.peakTemperatureCelsius, '°C')}`,
    use.energyJoules === null ? NOT_AVAILABLE : `${digits(use.energyJoules / 3.6e6)} kWh`,
  ])
  const cells = (tag: 'th' | 'td', row: readonly string[]) =>
    `<tr>${row.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join('')}</tr>`
  return `<h2>GPUs</h2><div class="scroll"><table>${cells('th', head)}${rows.map((row) => cells('td', row)).join('')}</table></div>`
}

const MOST_ROWS = 200

function findingTable({ findings }: Summary): string {
  if (findings.length === 0) return '<h2>Findings</h2><p>None.</p>'
  const rows = findings.slice(0, MOST_ROWS).map((finding) => {
    const advice = finding.advice.length === 0 ? '' : `<br><span class="faint">${escapeHtml(finding.advice.join(' '))}</span>`
    const until = finding.until === null ? '' : ` – ${utcTime(finding.until).slice(11)}`
    return `<tr data-at="${finding.at}"><td>${utcTime(finding.at)}${until}</td><td class="${finding.severity}">${finding.severity}</td><td>${escapeHtml(finding.detector)}</td><td>${finding.gpuIndex ?? ''}</td><td>${escapeHtml(finding.message)}${advice}</td></tr>`
  })
  const more = findings.length > MOST_ROWS ? `<p class="faint">… and ${findings.length - MOST_ROWS} more.</p>` : ''
  return `<h2>Findings</h2><div class="scroll"><table><tr><th>when</th><th>severity</th><th>detector</th><th>GPU</th><th>what</th></tr>${rows.join('')}</table></div>${more}`
}

function utcTime(at: number): string {
  return Number.isFinite(at) ? new Date(at).toISOString().slice(0, 19).replace('T', ' ') : ''
}

function clockDuration(seconds: number): string {
  const whole = Math.round(seconds)
  const two = (value: number) => String(value).padStart(2, '0')
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`
}
