/** A profile as one HTML file. */
import { formatBytes, formatCount, formatDuration, formatPercent, NOT_AVAILABLE } from '../core/format.ts'
import type { GpuInfo, Reading } from '../core/model.ts'
import type { ReportChart } from '../core/report-page.ts'
import { VERSION } from '../core/version.ts'
import { findingMarks, findingTable } from './finding-html.ts'
import { chartPlaces, htmlPage, NO_SCRIPT } from './html-page.ts'
import { escapeHtml, tableHtml, timeHtml } from './html-text.ts'
import type { MemoryProfile, MemoryProfileReport, ProfiledDevice } from './memory-profile.ts'
import { deviceCharts } from './profile-charts.ts'

export function profileHtml(profile: MemoryProfile, report: MemoryProfileReport, infos: readonly GpuInfo[]): string {
  const { summary } = report
  const charts: ReportChart[] = []
  const devices = infos.map((info) => {
    const own = deviceCharts(profile, info)
    charts.push(...own)
    return devicePart(report.devices[info.label], info, chartPlaces(own.map((chart) => charts.indexOf(chart))))
  })
  const findings = profile.findings.list().map(({ firstAt, said, resolvedAt }) => ({
    ...said,
    at: firstAt,
    until: resolvedAt,
    gpuIndex: said.subject.gpuIndex,
  }))
  const generatedAt = Date.parse(report.timestamp)
  const from = report.started_at === null ? generatedAt : Date.parse(report.started_at)
  const to = report.ended_at === null ? from : Date.parse(report.ended_at)
  return htmlPage({
    title: 'GPU memory profile',
    head: report.started_at === null ? '' : `<span class="faint">${timeHtml(from, to)}</span>`,
    body: `${summary.simulated ? '<p class="note">SIMULATED GPUs: nothing here was measured.</p>' : ''}
<p>${formatDuration(summary.duration_seconds * 1000)}, ${summary.samples_count} samples of ${formatCount(summary.total_devices, 'GPU')}, ${formatBytes(summary.total_memory_gb === null ? null : summary.total_memory_gb * 1024 ** 3)} in total, ${percentText(summary.overall_utilization)} in use at the end.</p>
${findingTable(findings)}
${NO_SCRIPT}
<p class="faint" id="zoomed"></p>
${devices.join('\n')}`,
    notes: `${NOT_AVAILABLE}: the device does not report it.`,
    version: VERSION,
    generatedAt,
    data: { from, to, times: { firstAt: from, stepMs: 0, count: 0 }, marks: findingMarks(findings), charts },
  })
}

function devicePart(device: ProfiledDevice | undefined, info: GpuInfo, charts: string): string {
  if (device === undefined) return ''
  const { statistics, memory, current_usage: now } = device
  const percentiles = Object.entries(statistics.percentiles ?? {}).map(([name, value]) => `${name} ${percentText(value)}`)
  const rows: [string, string][] = [
    ['in use at the end', `${formatBytes(now.allocated)} of ${formatBytes(now.total)} (${percentText(now.utilization_percent)})`],
    [
      'average, lowest, highest',
      [statistics.avg_utilization, statistics.min_utilization, statistics.max_utilization].map(percentText).join(', '),
    ],
    ['percentiles', percentiles.length === 0 ? NOT_AVAILABLE : percentiles.join(', ')],
    ['highest use', `${formatBytes(memory.max)}${memory.max_at === null ? '' : ` at ${timeHtml(Date.parse(memory.max_at))}`}`],
    ['growth', memory.growth_per_minute === null ? NOT_AVAILABLE : `${signedBytes(memory.growth_per_minute)} per minute`],
    ['samples', String(statistics.samples_count)],
    ...(device.state === 'ok' ? [] : [['state', escapeHtml(`${device.state}: ${device.state_reason ?? ''}`)] as [string, string]]),
  ]
  return `<h2>GPU ${escapeHtml(info.label)} ${escapeHtml(info.name ?? '')}</h2>
${charts}
<dl>${rows.map(([name, value]) => `<dt>${name}</dt><dd>${value}</dd>`).join('')}</dl>
${processTable(device)}`
}

function processTable({ process_peaks: peaks }: ProfiledDevice): string {
  if (peaks.length === 0) return '<p class="faint">No process used its memory.</p>'
  const rows = peaks.map(
    (one) =>
      `<tr><td class="number">${one.pid}</td><td>${escapeHtml(one.user ?? NOT_AVAILABLE)}</td><td class="number">${formatBytes(one.peak)}</td><td class="number">${formatBytes(one.last)}</td><td class="wide">${escapeHtml(one.command ?? NOT_AVAILABLE)}</td></tr>`,
  )
  return tableHtml('processes', ['PID', 'user', 'highest', 'last', 'command'], rows)
}

export function percentText(percent: Reading): string {
  return formatPercent(percent === null ? null : percent / 100)
}

export function signedBytes(bytes: number): string {
  return bytes < 0 ? formatBytes(bytes) : `+${formatBytes(bytes)}`
}
