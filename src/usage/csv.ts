import type { UsageSummary } from './summary.ts'

const COLUMNS = [
  ['gpu_hours', 'gpuHours'],
  ['free_hours', 'freeHours'],
  ['busy_hours', 'busyHours'],
  ['busy_ratio', 'busyRatio'],
  ['sm_hours', 'smHours'],
  ['sm_ratio', 'smRatio'],
  ['memory_gib_hours', 'memoryGibHours'],
  ['energy_kwh', 'energyKwh'],
  ['cost', 'cost'],
  ['idle_hours', 'idleHours'],
  ['throttled_hours', 'throttledHours'],
  ['lost_oom_hours', 'lostOomHours'],
  ['lost_dead_hours', 'lostDeadHours'],
] as const

/** A line per group; empty where a figure is not known. */
export function usageCsv({ by, groups, simulated }: UsageSummary): string {
  const head = [by, 'label', 'users', 'simulated', ...COLUMNS.map(([name]) => name)].join(',')
  const lines = groups.map((group) =>
    [
      cell(group.key),
      cell(group.label),
      cell(group.users.join(' ')),
      String(simulated),
      ...COLUMNS.map(([, field]) => (group[field] === null ? '' : String(Math.round((group[field] ?? 0) * 1e6) / 1e6))),
    ].join(','),
  )
  return `${[head, ...lines].join('\r\n')}\r\n`
}

/** A name that begins like a formula would be one in a spreadsheet. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
