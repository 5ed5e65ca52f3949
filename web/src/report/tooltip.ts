import type { ChartSeries, TimeChartProps } from '../chart/time-chart.tsx'
import { momentText } from '../chart/time-ticks.ts'
import { NOT_FINITE } from './chart-props.ts'

const MOST_LINES = 24
const LONGEST_LINE = 110
/** How far from the pointer a figure is looked for, in points. */
const NEAR_POINTS = 8
/** How far a mark may be, as a part of what is shown. */
const NEAR_MARK = 1 / 120

export function tooltipLines(props: TimeChartProps, index: number, moment: number): string[] {
  const figures = props.series.flatMap((one) => figureLine(one, index, props) ?? [])
  const reach = (props.to - props.from) * NEAR_MARK
  const marks = (props.marks ?? []).filter(({ at }) => Math.abs(at - moment) < reach).map(({ label }) => label.slice(0, LONGEST_LINE))
  return [momentText(props.at[index] ?? moment, 'time'), ...figures, ...marks].slice(0, MOST_LINES)
}

function figureLine(one: ChartSeries, index: number, { format }: TimeChartProps): string | null {
  const point = nearest(one, index)
  if (point === null) return null
  const value = one.values[point] ?? null
  if (Number.isNaN(value)) return `${one.label}  ${NOT_FINITE}`
  const [min, max] = [one.min?.[point] ?? null, one.max?.[point] ?? null]
  const range = min === max ? '' : `  (${format(min)} – ${format(max)})`
  return `${one.label}  ${format(value)}${range}`
}

function nearest({ values }: ChartSeries, index: number): number | null {
  for (let distance = 0; distance < NEAR_POINTS; distance++)
    for (const point of [index - distance, index + distance]) if ((values[point] ?? null) !== null) return point
  return null
}
