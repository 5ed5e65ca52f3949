/** A profile as one self-contained page: no script, nothing fetched, light and dark as the reader has it. */
import type { Theme } from '../core/chart/palette.ts'
import { escapeXml as safe } from '../core/chart/svg.ts'
import { formatBytes, formatCount, formatDuration, formatPercent, NOT_AVAILABLE } from '../core/format.ts'
import type { GpuInfo, Reading } from '../core/model.ts'
import { VERSION } from '../core/version.ts'
import type { MemoryProfile, MemoryProfileReport, ProfiledDevice } from './memory-profile.ts'
import { memoryChart, utilizationChart } from './profile-charts.ts'

const STYLE = `
:root { color-scheme: light dark; --back: #fff; --text: #1c2530; --faint: #5a6673; --line: #d9dee4; --bad: #c8371c; --warn: #9a6200 }
@media (prefers-color-scheme: dark) { :root { --back: #14181d; --text: #e8edf2; --faint: #9aa7b4; --line: #343d47; --bad: #ff7a59; --warn: #f0b23c } }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem } h2 { margin-top: 2.5rem; font-size: 1.2rem; border-bottom: 1px solid var(--line) }
.faint { color: var(--faint) } .simulated { color: var(--bad); font-weight: 700 }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 } th, td { padding: .25rem .6rem .25rem 0; text-align: left; border-bottom: 1px solid var(--line) }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums } td.text { overflow-wrap: anywhere }
svg { max-width: 100%; height: auto; display: block; margin: 1rem 0 }
.critical { color: var(--bad) } .warning { color: var(--warn) } li { margin: .6rem 0 }
.dark { display: none } @media (prefers-color-scheme: dark) { .dark { display: block } .light { display: none } }
@media print { .dark { display: none } .light { display: block } }
`

export function profileHtml(profile: MemoryProfile, report: MemoryProfileReport, infos: readonly GpuInfo[]): string {
  const { summary } = report
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>GPU memory profile, ${safe(report.started_at ?? report.timestamp)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>GPU memory profile</h1>
${summary.simulated ? '<p class="simulated">SIMULATED GPUs: nothing here was measured.</p>' : ''}
<p>${safe(report.started_at ?? NOT_AVAILABLE)} to ${safe(report.ended_at ?? NOT_AVAILABLE)}: ${formatDuration(summary.duration_seconds * 1000)}, ${summary.samples_count} samples of ${formatCount(summary.total_devices, 'GPU')}, ${formatBytes(summary.total_memory_gb === null ? null : summary.total_memory_gb * 1024 ** 3)} in all, ${percentText(summary.overall_utilization)} in use at the end.</p>
${findingsPart(report)}
${infos.map((info) => devicePart(profile, report.devices[info.label], info)).join('\n')}
<p class="faint">gpuwarden ${safe(VERSION)}. Times are UTC. ${NOT_AVAILABLE}: the device cannot tell.</p>
</body>
</html>
`
}

function findingsPart({ findings }: MemoryProfileReport): string {
  if (findings.length === 0) return '<h2>Findings</h2>\n<p>Nothing was found in this time.</p>'
  const items = findings.map(
    (one) =>
      `<li><b class="${safe(one.severity)}">${safe(one.severity)} ${safe(one.detector)}</b> <span class="faint">${safe(one.at)}${one.resolved_at === null ? '' : `, over since ${safe(one.resolved_at)}`}, confidence ${one.confidence.toFixed(2)}</span><br>${safe(one.message)}${advice(one.advice)}</li>`,
  )
  return `<h2>Findings</h2>\n<ul>\n${items.join('\n')}\n</ul>`
}

function advice(lines: readonly string[]): string {
  return lines.length === 0 ? '' : `<br><span class="faint">${lines.map((line) => safe(line)).join('. ')}.</span>`
}

function devicePart(profile: MemoryProfile, device: ProfiledDevice | undefined, info: GpuInfo): string {
  if (device === undefined) return ''
  const { statistics, memory, current_usage: now } = device
  const percentiles = statistics.percentiles
  const rows: [string, string][] = [
    ['in use at the end', `${formatBytes(now.allocated)} of ${formatBytes(now.total)} (${percentText(now.utilization_percent)})`],
    [
      'average, lowest, highest',
      `${percentText(statistics.avg_utilization)}, ${percentText(statistics.min_utilization)}, ${percentText(statistics.max_utilization)}`,
    ],
    [
      'percentiles',
      percentiles === null
        ? NOT_AVAILABLE
        : Object.entries(percentiles)
            .map(([name, value]) => `${name} ${percentText(value)}`)
            .join(', '),
    ],
    ['highest use', `${formatBytes(memory.max)}${memory.max_at === null ? '' : ` at ${memory.max_at}`}`],
    ['growth', memory.growth_per_minute === null ? NOT_AVAILABLE : `${signedBytes(memory.growth_per_minute)} a minute`],
    ['samples', String(statistics.samples_count)],
    ...(device.state === 'ok' ? [] : ([['state', `${device.state}: ${device.state_reason ?? ''}`]] as [string, string][])),
  ]
  return `<h2>GPU ${safe(info.label)} ${safe(info.name ?? '')}</h2>
${bothThemes((theme) => memoryChart(profile, info, theme), `memory-${info.label}`)}
${bothThemes((theme) => utilizationChart(profile, info, theme), `busy-${info.label}`)}
<table><tbody>
${rows.map(([name, value]) => `<tr><th scope="row">${safe(name)}</th><td>${safe(value)}</td></tr>`).join('\n')}
</tbody></table>
${processTable(device)}`
}

function processTable({ process_peaks: peaks }: ProfiledDevice): string {
  if (peaks.length === 0) return '<p class="faint">No process with memory was seen on it.</p>'
  const rows = peaks.map(
    (one) =>
      `<tr><td class="number">${one.pid}</td><td>${safe(one.user ?? NOT_AVAILABLE)}</td><td class="number">${formatBytes(one.peak)}</td><td class="number">${formatBytes(one.last)}</td><td class="text">${safe(one.command ?? NOT_AVAILABLE)}</td></tr>`,
  )
  return `<table><thead><tr><th class="number">PID</th><th>user</th><th class="number">highest</th><th class="number">last</th><th>command</th></tr></thead><tbody>
${rows.join('\n')}
</tbody></table>`
}

/** Names inside a picture are made unique: what is not shown must not be what another picture refers to. */
function bothThemes(draw: (theme: Theme) => string, name: string): string {
  const unique = name.replace(/[^a-z0-9-]/gi, '_')
  return (['light', 'dark'] as const)
    .map((theme) => `<div class="${theme}">${draw(theme).replaceAll(/(id="|url\(#)clip-/g, `$1${theme}-${unique}-clip-`)}</div>`)
    .join('\n')
}

/** Of a figure that is a percentage already. */
export function percentText(percent: Reading): string {
  return formatPercent(percent === null ? null : percent / 100)
}

export function signedBytes(bytes: number): string {
  return bytes < 0 ? formatBytes(bytes) : `+${formatBytes(bytes)}`
}
