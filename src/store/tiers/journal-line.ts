/** One line of the journal: a device, ten seconds, and per reading one figure, or [least, mean, most], or these and their count. */
import type { Summary } from '../minute-ring.ts'
import { type Row, samplesIn } from './rows.ts'
import { seriesOf } from './series.ts'

/** Means are as exact as single precision. */
const MEAN_DIGITS = 8

/** null: no reading at all, so nothing is to be written. */
export function journalLine(device: string, at: number, row: Row): string | null {
  const samples = samplesIn(row)
  if (samples === 0) return null
  const record: Record<string, unknown> = { device, at: new Date(at).toISOString(), samples }
  seriesOf(device).all.forEach(({ column }, series) => {
    const { count, sum, min, max } = row.summary(series)
    if (count === 0) return
    if (min === max && count === samples) record[column] = min
    else {
      const mean = Number((sum / count).toPrecision(MEAN_DIGITS))
      record[column] = count === samples ? [min, mean, max] : [min, mean, max, count]
    }
  })
  return `${JSON.stringify(record)}\n`
}

/** How the lines of a device begin: all others need not be parsed. */
export function lineStart(device: string): string {
  return `{"device":${JSON.stringify(device)},`
}

const DEVICE = /^\{"device":("(?:[^"\\]|\\.)*"),"at":"([^"]+)"/

/** null: not a line of a journal, such as one that was cut off by a crash. */
export function headOfLine(line: string): { readonly device: string; readonly at: number } | null {
  const match = DEVICE.exec(line)
  if (match?.[1] === undefined || match[2] === undefined) return null
  const at = Date.parse(match[2])
  return Number.isNaN(at) ? null : { device: JSON.parse(match[1]) as string, at }
}

/** False: the line is damaged, and nothing of it was taken. */
export function readLine(line: string, take: (device: string, at: number, series: number, summary: Summary) => void): boolean {
  let record: unknown
  try {
    record = JSON.parse(line)
  } catch {
    return false
  }
  const { device, at: time, samples, ...columns } = (typeof record === 'object' && record !== null ? record : {}) as Record<string, unknown>
  const at = typeof time === 'string' ? Date.parse(time) : Number.NaN
  if (typeof device !== 'string' || Number.isNaN(at) || !isCount(samples)) return false
  const { byColumn } = seriesOf(device)
  for (const [column, value] of Object.entries(columns)) {
    const series = byColumn.get(column)
    const summary = series === undefined ? null : summaryOf(value, samples)
    if (series !== undefined && summary !== null) take(device, at, series, summary)
  }
  return true
}

function summaryOf(value: unknown, samples: number): Summary | null {
  if (isFigure(value)) return { count: samples, sum: value * samples, min: value, max: value }
  if (!Array.isArray(value)) return null
  const [min, mean, max, count = samples] = value as unknown[]
  return isFigure(min) && isFigure(mean) && isFigure(max) && isCount(count) ? { count, sum: mean * count, min, max } : null
}

function isFigure(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 0
}
