/** What uPlot needs to know, from what a page wants to show. */
import uPlot from 'uplot'
import type { Reading } from '../../../src/core/model.ts'
import { formatBytes, formatRate } from '../words.ts'
import { bridged, lonePoints, longestHole } from './holes.ts'
import { overlayPlugin } from './overlay.ts'
import { type ChartColors, seriesColor, translucent } from './palette.ts'
import { stackUp } from './stack.ts'
import type { ChartSeries, TimeChartProps } from './time-chart.tsx'
import { elapsedText, elapsedTicks, momentText, tickLabel, timeTicks } from './time-ticks.ts'

export interface ChartData {
  /** x, then the lines, then the pairs (max, min) of the bands, then the fan (high, low, middle). */
  readonly columns: readonly Column[]
}

type Column = readonly (Reading | undefined)[]

/** The legend shows NaN and infinity; a line has a gap there. */
function drawn(values: Column): Column {
  const isOdd = (value: Reading | undefined) => value !== null && value !== undefined && !Number.isFinite(value)
  return values.some(isOdd) ? values.map((value) => (isOdd(value) ? null : value)) : values
}

export function chartData({ at, series, stacked, fan }: TimeChartProps): ChartData {
  const layers = stacked ? stackUp(series.map(({ values }) => values)) : null
  const lines = series.map((one, index) => drawn(passedOver(one, layers?.[index] ?? one.values)))
  const bands = stacked ? [] : series.flatMap((one) => (one.max && one.min ? [passedOver(one, one.max), passedOver(one, one.min)] : []))
  if (!fan) return { columns: [at, ...lines, ...bands] }
  // The future goes on where the past ends, on one axis.
  const before: Reading[] = at.map(() => null)
  const after: Reading[] = fan.at.map(() => null)
  return {
    columns: [
      [...at, ...fan.at],
      ...[...lines, ...bands].map((column) => [...column, ...after]),
      [...before, ...fan.high],
      [...before, ...fan.low],
      [...before, ...fan.middle],
    ],
  }
}

function passedOver({ spanned }: ChartSeries, values: readonly Reading[]): Column {
  return spanned === 'usual' ? bridged(values, longestHole(values)) : values
}

const LINE_WIDTH = 1.5
/** Many points beneath each other: a line of one pixel looks the same there, and costs half as much to paint. */
const DENSE_WIDTH = 1
const DENSE_POINTS_PER_PIXEL = 16
const BAND_ALPHA = 0.22
/** Of all bands of a chart together: the lines of many ranks stay in sight. */
const BANDS_ALPHA = 5 * BAND_ALPHA
/** 1 KiB, 2 KiB, 4 KiB … */
const BYTE_STEPS = Array.from({ length: 42 }, (_, power) => 1024 * 2 ** power)

export function chartOptions(
  current: () => TimeChartProps,
  palette: ChartColors,
  size: { readonly width: number; readonly height: number },
  legend: { readonly current: HTMLElement | null },
): uPlot.Options {
  const props = current()
  const { series, stacked, fan } = props
  const lineWidth = props.at.length > DENSE_POINTS_PER_PIXEL * size.width ? DENSE_WIDTH : LINE_WIDTH
  const lines: uPlot.Series[] = series.map((one, index) => {
    const color = seriesColor(palette, one.color ?? index)
    return {
      label: one.label,
      stroke: one.faint ? translucent(color, 0.35) : color,
      width: lineWidth,
      points: { show: false, size: 4, fill: color, filter: (plot: uPlot, position: number) => lonePoints(plot.data[position] as Column) },
      ...(one.spanned === true ? { spanGaps: true } : {}),
      ...(one.dash ? { dash: [6, 4] } : {}),
      ...(one.stepped ? { paths: uPlot.paths.stepped?.({ align: 1 }) } : {}),
      ...(one.area && !stacked ? { fill: translucent(color, 0.15) } : {}),
      ...(stacked && index === 0 ? { fill: translucent(color, 0.45) } : {}),
    } as uPlot.Series
  })
  const hidden: uPlot.Series = { points: { show: false }, width: 0, stroke: 'transparent' }
  const extremes = stacked
    ? []
    : series.flatMap((one, index) => (one.max && one.min ? [{ index, color: seriesColor(palette, one.color ?? index) }] : []))
  const bands: uPlot.Band[] = [
    ...(stacked
      ? series.slice(1).map((one, index) => ({
          series: [index + 2, index + 1] as uPlot.Band.Bounds,
          fill: translucent(seriesColor(palette, one.color ?? index + 1), 0.45),
        }))
      : []),
    ...extremes.map(({ color }, position) => {
      const first = 1 + lines.length + position * 2
      return {
        series: [first, first + 1] as uPlot.Band.Bounds,
        fill: translucent(color, Math.min(BAND_ALPHA, BANDS_ALPHA / extremes.length)),
      }
    }),
  ]
  const fanSeries: uPlot.Series[] = []
  if (fan) {
    const first = 1 + lines.length + extremes.length * 2
    bands.push({ series: [first, first + 1], fill: translucent(palette.critical, 0.18) })
    fanSeries.push(hidden, hidden, { label: fan.label, stroke: palette.critical, width: LINE_WIDTH, dash: [4, 4], points: { show: false } })
  }
  const isTime = (props.x ?? 'time') === 'time'
  return {
    ...size,
    ms: 1,
    padding: [8, 12, 0, 0],
    legend: { show: false },
    cursor: {
      drag: { x: true, y: false, setScale: false, uni: 20 },
      focus: { prox: 24 },
      points: { size: 6 },
      ...(props.sync ? { sync: { key: props.sync, setSeries: false } } : {}),
      bind: {
        dblclick: () => () => {
          current().onReset?.()
          return null
        },
      },
    },
    scales: {
      x: { time: isTime, range: (_, min, max) => (current().from < current().to ? [current().from, current().to] : [min, max]) },
      y: {
        ...(props.log ? { distr: 3 } : {}),
        range: (_, min, max) => valueRange(current(), min, max),
      },
    },
    series: [{ label: isTime ? 'Time' : 'Step' }, ...lines, ...extremes.flatMap(() => [hidden, hidden]), ...fanSeries],
    bands,
    axes: [
      {
        stroke: palette.faint,
        font: '11px system-ui, sans-serif',
        grid: { stroke: palette.grid, width: 1 },
        ticks: { show: false },
        size: 26,
        space: 70,
        ...(isTime
          ? {
              splits: (plot: uPlot, _axis: number, min: number, max: number) => [...timeTicks(min, max, Math.max(2, plot.width / 90))],
              values: (_plot: uPlot, splits: number[]) =>
                splits.map((at, index) => tickLabel(at, (splits[1] ?? at) - (splits[0] ?? at), index === 0)),
            }
          : props.x === 'elapsed'
            ? {
                splits: (plot: uPlot, _axis: number, min: number, max: number) => [...elapsedTicks(min, max, Math.max(2, plot.width / 90))],
                values: (_plot: uPlot, splits: number[]) => splits.map(elapsedText),
              }
            : {}),
      },
      {
        stroke: palette.faint,
        font: '11px system-ui, sans-serif',
        grid: { stroke: palette.grid, width: 1, ...(props.log ? { filter: (_plot, splits) => splits.map(decadeOnly) } : {}) },
        ticks: { show: false },
        size: 64,
        space: 34,
        ...(isInBytes(props) ? { incrs: BYTE_STEPS } : {}),
        values: (_plot, splits) => splits.map((value) => (value === null ? '' : current().format(value))),
      },
    ],
    hooks: {
      setSelect: [
        (chart) => {
          const { left, width } = chart.select
          if (width < 8) return
          const from = chart.posToVal(left, 'x')
          const to = chart.posToVal(left + width, 'x')
          chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
          current().onZoom?.(from, to)
        },
      ],
      setCursor: [(chart) => writeLegend(chart, current(), legend.current)],
    },
    plugins: [overlayPlugin(current, palette)],
  }
}

function valueRange({ least, most, limits, log }: TimeChartProps, min: number | null, max: number | null): [number, number] {
  const shown = (limits ?? []).flatMap(({ value, isFar }) => (isFar ? [] : [value]))
  const low = Math.min(least ?? Number.POSITIVE_INFINITY, min ?? Number.POSITIVE_INFINITY)
  const high = Math.max(most ?? Number.NEGATIVE_INFINITY, max ?? Number.NEGATIVE_INFINITY, ...shown)
  const bottom = Number.isFinite(low) ? low : 0
  const top = Number.isFinite(high) ? high : 1
  if (log) return decades(bottom, top)
  if (top <= bottom) return [bottom - Math.max(1e-6, Math.abs(bottom) * 0.1), bottom + Math.max(1e-6, Math.abs(bottom) * 0.1)]
  const room = (top - bottom) * 0.04
  // Above the highest limit its name has to fit.
  const above =
    shown.length > 0 && Math.max(...shown) > top - 3 * room ? 3 * room : most !== null && most !== undefined && top <= most ? 0 : room
  return [least !== null && least !== undefined && bottom >= least ? least : bottom - room, top + above]
}

/** Round figures of bytes are powers of two, not of ten. */
function isInBytes({ format }: TimeChartProps): boolean {
  return format === formatBytes || format === formatRate
}

/** The lines between them are too many to look at. */
function decadeOnly(value: number): Reading {
  return Number.isInteger(Number(Math.log10(value).toFixed(6))) ? value : null
}

/** Whole powers of ten around what is positive. */
function decades(bottom: number, top: number): [number, number] {
  const high = top > 0 ? top : 1
  const low = bottom > 0 ? bottom : high / 1000
  return [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(Math.max(high, low * 1.001)))]
}

/** Straight into the page: the crosshair moves sixty times a second. */
export function writeLegend(chart: uPlot, props: TimeChartProps, legend: HTMLElement | null): void {
  if (!legend) return
  const index = chart.cursor.idx
  const at = index === null || index === undefined ? null : (chart.data[0][index] ?? null)
  const values = legend.querySelectorAll<HTMLElement>('[data-value]')
  props.series.forEach((one, position) => {
    const element = values[position]
    if (!element) return
    const value = at === null ? lastFigure(one, chart.valToIdx(props.to)) : valueAt(one, index ?? 0, chart.data[position + 1] as Column)
    element.textContent = props.format(value)
  })
  const moment = legend.querySelector<HTMLElement>('[data-moment]')
  if (moment) moment.textContent = at === null ? '' : momentText(at, props.x ?? 'time')
}

/** The figure at a point; of a line that goes on over points without one, its last one before it. */
function valueAt({ values, spanned }: ChartSeries, index: number, line: Column): Reading {
  const isPassed = (point: number) => (spanned === true ? (values[point] ?? null) === null : line[point] === undefined)
  let known = index
  while (known > 0 && isPassed(known)) known--
  return values[known] ?? null
}

/** The last one up to a point; without it, of all. */
export function lastFigure({ values, spanned }: ChartSeries, end = values.length): Reading {
  let last = Math.min(end, values.length - 1)
  if (spanned) while (last > 0 && values[last] === null) last--
  return values[last] ?? null
}
