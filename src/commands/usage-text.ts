/** Usage as a table that fits into 80 columns. */
import { formatPercent, NOT_AVAILABLE, printable } from '../core/format.ts'
import type { Reading } from '../core/model.ts'
import { timeText } from '../core/time-span.ts'
import type { Figures } from '../usage/figures.ts'
import type { UsageGroup, UsageSummary } from '../usage/summary.ts'

const WIDTH = 80
const LEAST_NAME = 10

const TITLES = ['HELD h', 'BUSY', 'SM', 'IDLE h', 'GiB*h', 'kWh', 'COST', 'LOST h'] as const

export function usageText(summary: UsageSummary, place: string): string[] {
  const { from, to, by, groups, total, free, simulated, hasOther, moreGroups } = summary
  const head = [`GPU usage by ${by}, ${timeText(from, to, 'local')}`, `From ${printable(place)}.`]
  if (simulated) head.push('The GPUs are SIMULATED.')
  if (groups.length === 0) return [...head, '', 'Nothing was counted in this time.']
  const hasFree = by === 'gpu' || by === 'day'
  const rows = groups.map((group) => [nameOf(group, by), ...cells(group, hasFree ? group.freeHours : undefined)])
  const titles = [by.toUpperCase(), ...(hasFree ? ['HELD h', 'FREE h', ...TITLES.slice(1)] : TITLES)]
  const totals = ['total', ...cells(total, hasFree ? free.gpuHours : undefined)]
  return [
    ...head,
    '',
    ...aligned([titles, ...rows, totals]),
    ...(moreGroups > 0 ? [`${moreGroups} more are in the total alone.`] : []),
    '',
    ...notes(summary),
    ...(hasOther ? [simulated ? 'There is also use of real GPUs.' : 'There is also use of simulated GPUs: --simulated shows it.'] : []),
  ]
}

function nameOf({ label, users }: UsageGroup, by: UsageSummary['by']): string {
  const name = printable(label)
  return (by === 'job' || by === 'run') && users.length > 0 ? `${name} (${printable(users[0] ?? '')})` : name
}

function cells(figures: Figures, freeHours: Reading | undefined): string[] {
  const { gpuHours, busyRatio, smRatio, idleHours, memoryGibHours, energyKwh, cost, lostOomHours, lostDeadHours } = figures
  const plain = [
    amount(gpuHours),
    formatPercent(busyRatio),
    formatPercent(smRatio),
    amount(idleHours),
    amount(memoryGibHours),
    amount(energyKwh),
    cost === null ? NOT_AVAILABLE : `$${amount(cost)}`,
    amount(lostOomHours + lostDeadHours),
  ]
  return freeHours === undefined ? plain : [plain[0] ?? '', amount(freeHours), ...plain.slice(1)]
}

/** Three digits are enough to compare. */
function amount(value: Reading): string {
  if (value === null) return NOT_AVAILABLE
  return value >= 100 || value === 0 ? String(Math.round(value)) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

function notes({ total, free, costIsEstimate }: UsageSummary): string[] {
  const { gpuHours, throttledHours, lostOomHours, lostDeadHours, idleHours } = total
  const watched = gpuHours + free.gpuHours
  const lines = [
    `Held ${amount(gpuHours)} of ${amount(watched)} GPU-hours (${formatPercent(watched > 0 ? gpuHours / watched : null)}); nobody held the rest.`,
  ]
  if (idleHours > 0) lines.push(`Idle: ${amount(idleHours)} GPU-hours with memory held and nothing computed.`)
  const lost = [
    lostOomHours > 0 ? `${amount(lostOomHours)} h by running out of memory` : '',
    lostDeadHours > 0 ? `${amount(lostDeadHours)} h by runs that died` : '',
  ].filter((part) => part !== '')
  if (lost.length > 0) lines.push(`Lost since the last checkpoint: ${lost.join(', ')}.`)
  if (throttledHours > 0) lines.push(`Slowed down by heat or power: ${amount(throttledHours)} GPU-hours.`)
  if (costIsEstimate) lines.push('Costs are list prices: set usage.price_per_hour or usage.prices for your own.')
  return lines
}

/** Names on the left, cut where there is no room; figures on the right. */
function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const figures = widths.slice(1).reduce((sum, width) => sum + width + 2, 0)
  const name = Math.min(widths[0] ?? 0, Math.max(LEAST_NAME, WIDTH - figures))
  return rows.map(([first = '', ...rest]) => {
    const shown = first.length > name ? `${first.slice(0, name - 1)}…` : first.padEnd(name)
    return `${shown}${rest.map((cell, index) => `  ${cell.padStart(widths[index + 1] ?? 0)}`).join('')}`.trimEnd()
  })
}
