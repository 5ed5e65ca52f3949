/** A profile in a few lines, for a terminal. */
import { formatBytes, formatCount, formatDuration, NOT_AVAILABLE, printable } from '../core/format.ts'
import type { MemoryProfileReport, ProfiledDevice } from './memory-profile.ts'
import { percentText, signedBytes } from './profile-html.ts'

const MOST_PROCESSES = 5

export function profileText(report: MemoryProfileReport): string {
  const { summary } = report
  const lines = [
    `${summary.simulated ? 'SIMULATED GPUs. ' : ''}${formatDuration(summary.duration_seconds * 1000)}, ${summary.samples_count} samples of ${formatCount(summary.total_devices, 'GPU')}`,
  ]
  for (const [label, device] of Object.entries(report.devices)) lines.push('', ...deviceLines(label, device))
  lines.push('', report.findings.length === 0 ? 'Findings: none.' : 'Findings:')
  for (const { severity, detector, message, state } of report.findings)
    lines.push(
      `  ${severity === 'info' ? '·' : '!'} ${severity} ${detector}${state === 'resolved' ? ' (over)' : ''}: ${printable(message)}`,
    )
  return lines.join('\n')
}

function deviceLines(label: string, device: ProfiledDevice): string[] {
  const { statistics, memory, current_usage: now } = device
  const { percentiles } = statistics
  const lines = [
    `GPU ${label}  ${printable(device.name ?? 'unknown GPU')}${device.state === 'ok' ? '' : `  ${device.state}: ${device.state_reason ?? 'no reason given'}`}`,
    `  in use     ${formatBytes(now.allocated)} of ${formatBytes(now.total)} (${percentText(now.utilization_percent)})`,
    `  average    ${percentText(statistics.avg_utilization)}, lowest ${percentText(statistics.min_utilization)}, highest ${percentText(statistics.max_utilization)}${percentiles === null ? '' : `; median ${percentText(percentiles.p50)}, p95 ${percentText(percentiles.p95)}`}`,
    `  growth     ${memory.growth_per_minute === null ? NOT_AVAILABLE : `${signedBytes(memory.growth_per_minute)} per minute`}`,
  ]
  for (const one of device.process_peaks.slice(0, MOST_PROCESSES))
    lines.push(
      `  process    ${one.pid} ${printable(one.user ?? '')}  highest ${formatBytes(one.peak)}  ${printable(one.command ?? '').slice(0, 60)}`.trimEnd(),
    )
  if (device.process_peaks.length > MOST_PROCESSES) lines.push(`  … and ${device.process_peaks.length - MOST_PROCESSES} more processes`)
  return lines
}
