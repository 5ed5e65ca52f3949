/** The layout of a chart: its axes, and the space for its lines. */
import type { Reading } from '../model.ts'
import { PALETTE, type Palette, seriesColor } from './palette.ts'
import { isDrawable, stack } from './paths.ts'
import { type Axis, linear, type Project, type Tick, valueAxis } from './scale.ts'
import type { ChartSpec } from './spec.ts'
import { textWidth } from './svg.ts'
import { timeTicks } from './time-axis.ts'

export interface LegendEntry {
  readonly name: string
  readonly color: string
  readonly dashed: boolean
}

export interface Layout {
  readonly palette: Palette
  readonly fontSize: number
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
  readonly x: Project
  readonly y: Project
  readonly from: number
  readonly to: number
  readonly valueAxis: Axis
  readonly xTicks: readonly Tick[]
  readonly legend: readonly LegendEntry[]
  readonly legendRows: readonly (readonly LegendEntry[])[]
  /** The series, or their running sums. */
  readonly columns: readonly (readonly Reading[])[]
}

export const LEGEND_SWATCH = 18
export const LEGEND_GAP = 14

export function layOut(spec: ChartSpec): Layout {
  const fontSize = spec.width >= 800 ? 12 : 11
  const titleSize = fontSize + 2
  const palette = PALETTE
  const columns =
    spec.stacked === true
      ? stack(
          spec.at.length,
          spec.series.map((series) => series.values),
        )
      : spec.series.map((series) => series.values)
  const legend = legendOf(spec, palette)
  const legendRows = rowsOf(legend, spec.width - 24, fontSize)
  const top = (spec.title === '' ? 12 : titleSize + 18) + legendRows.length * (fontSize + 6)
  const bottom = spec.height - fontSize - 12
  const { low, high } = valueRange(spec, columns)
  const axis = valueAxis(low, high, spec.unit, Math.max(2, Math.floor((bottom - top) / (fontSize * 2.7))))
  const left = Math.ceil(Math.max(...axis.ticks.map((tick) => textWidth(tick.label, fontSize)))) + 14
  const right = spec.width - 14
  const { from, to } = timeRange(spec)
  const most = Math.max(2, Math.floor((right - left) / (fontSize * 6.5)))
  const xTicks =
    spec.xKind === 'number'
      ? valueAxis(from, to, 'count', most).ticks.filter((tick) => tick.value >= from && tick.value <= to)
      : timeTicks(from, to, most, spec.timeZone)
  const x = linear(from, to, left, right)
  const y = linear(axis.from, axis.to, bottom, top)
  return { palette, fontSize, left, right, top, bottom, x, y, from, to, valueAxis: axis, xTicks, legend, legendRows, columns }
}

function legendOf(spec: ChartSpec, palette: Palette): LegendEntry[] {
  const entries = spec.series.map((series, index) => ({
    name: series.name,
    color: series.color ?? seriesColor(palette, index),
    dashed: false,
  }))
  if (spec.forecast) entries.push({ name: spec.forecast.name, color: seriesColor(palette, 0), dashed: true })
  return entries.length > 1 ? entries.filter((entry) => entry.name !== '') : []
}

function rowsOf(entries: readonly LegendEntry[], width: number, fontSize: number): LegendEntry[][] {
  const rows: LegendEntry[][] = []
  let used = Number.POSITIVE_INFINITY
  for (const entry of entries) {
    const needed = LEGEND_SWATCH + textWidth(entry.name, fontSize) + LEGEND_GAP
    if (used + needed > width) {
      rows.push([])
      used = 0
    }
    rows.at(-1)?.push(entry)
    used += needed
  }
  return rows
}

/** Quantities start at 0, so that a rise looks as large as it is; temperatures do not. */
function valueRange(spec: ChartSpec, columns: readonly (readonly Reading[])[]): { low: number; high: number } {
  let low = Number.POSITIVE_INFINITY
  let high = Number.NEGATIVE_INFINITY
  const take = (values: readonly Reading[] | undefined) => {
    for (const value of values ?? []) {
      if (!isDrawable(value)) continue
      if (value < low) low = value
      if (value > high) high = value
    }
  }
  for (const column of columns) take(column)
  for (const series of spec.series) {
    take(series.min)
    take(series.max)
  }
  take(spec.forecast?.values)
  take(spec.forecast?.low)
  take(spec.forecast?.high)
  take(spec.limits?.map((limit) => limit.value))
  if (low > high) [low, high] = [0, 1]
  const fromZero = ['bytes', 'bytes_per_second', 'ratio', 'watts', 'hertz'].includes(spec.unit as string) || spec.stacked === true
  if (fromZero && low > 0) low = 0
  if (spec.unit === 'ratio' && high <= 1) high = 1
  if (low === high) high = low === 0 ? 1 : low + Math.abs(low) * 0.1
  return { low: spec.lowest ?? low, high: spec.highest ?? high }
}

function timeRange(spec: ChartSpec): { from: number; to: number } {
  const moments = [spec.at[0], spec.at.at(-1), spec.forecast?.at[0], spec.forecast?.at.at(-1)].filter((at) => at !== undefined)
  const from = spec.from ?? (moments.length === 0 ? 0 : Math.min(...moments))
  const to = spec.to ?? (moments.length === 0 ? 1 : Math.max(...moments))
  return { from, to: to > from ? to : from + 1 }
}
