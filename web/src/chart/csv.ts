import type { Reading } from '../../../src/core/model.ts'

interface Named {
  readonly label: string
  readonly values: readonly Reading[]
}

/** A line per moment: ISO time (or step), then the figures; empty where there is none. */
export function csvOf(at: readonly number[], series: readonly Named[], x: 'time' | 'step' | 'elapsed'): string {
  const head = [x === 'elapsed' ? 'elapsed_ms' : x, ...series.map(({ label }) => label)].map(cell).join(',')
  const rows = at.map((moment, index) =>
    [x === 'time' ? new Date(moment).toISOString() : String(moment), ...series.map(({ values }) => figureText(values[index] ?? null))].join(
      ',',
    ),
  )
  return `${[head, ...rows].join('\r\n')}\r\n`
}

function figureText(value: Reading): string {
  return value === null ? '' : String(value)
}

/** A label that begins like a formula would be one in a spreadsheet. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
