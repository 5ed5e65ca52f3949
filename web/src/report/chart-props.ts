/** From a report's chart data to the properties of the page's charts. */
import { formatWhole } from '../../../src/core/format.ts'
import type { Reading } from '../../../src/core/model.ts'
import type { ChartUnit, ReportChart, ReportMark, ReportPageData } from '../../../src/core/report-page.ts'
import { bandsOfStretches, marksOfStretches, stretchesOf } from '../chart/not-finite.ts'
import type { ChartSeries, TimeChartProps } from '../chart/time-chart.tsx'
import { formatBytes, formatFigure, formatPercent, formatSeconds, severityTone } from '../words.ts'

type Figure = (value: Reading) => string

const FORMATS: Readonly<Record<ChartUnit, Figure>> = {
  bytes: formatBytes,
  ratio: formatPercent,
  celsius: (value) => formatWhole(value, '°C'),
  watts: (value) => formatWhole(value, ' W'),
  seconds: formatSeconds,
  number: formatFigure,
}

/** Where axes begin; figures without a unit follow the data. */
const LEAST: Readonly<Partial<Record<ChartUnit, number>>> = { bytes: 0, ratio: 0, celsius: 20, watts: 0, seconds: 0 }
/** Within this a linear axis shows all there is to see. */
const LINEAR_RATIO = 50
/** A limit that is this many times above everything is far. */
const FAR_RATIO = 5

export const NOT_FINITE = 'NaN or infinite'

export function chartProps(chart: ReportChart, page: ReportPageData): TimeChartProps {
  const { firstAt, stepMs, count } = page.times
  const at = chart.times ?? Array.from({ length: count }, (_, index) => firstAt + index * stepMs)
  const series = chart.series.map(lineOf)
  const odd = chart.series.flatMap(({ name, odd: points = [] }, index) =>
    points.length === 0 ? [] : [{ name, stretches: stretchesOf(at, series[index]?.values ?? []) }],
  )
  const { least, most } = extent(chart)
  const isLog = chart.log === true && least > 0 && most / least > LINEAR_RATIO
  const format = odd.length === 0 ? FORMATS[chart.unit] : oddAsWords(FORMATS[chart.unit])
  return {
    title: chart.title,
    at,
    series,
    from: page.from,
    to: page.to,
    format,
    stacked: chart.stacked === true,
    log: isLog,
    least: isLog ? null : (LEAST[chart.unit] ?? null),
    most: chart.unit === 'ratio' ? 1 : null,
    limits: chart.limit
      ? [
          {
            value: chart.limit.value,
            label: `${chart.limit.label} ${format(chart.limit.value)}`,
            isFar: most * FAR_RATIO < chart.limit.value,
          },
        ]
      : [],
    marks: [
      ...marksOf(chart, page.marks).map(({ at: moment, severity, detector, message }) => ({
        at: moment,
        label: `${severity} ${detector}: ${message}`,
        tone: severityTone(severity),
      })),
      ...odd.flatMap(({ name, stretches }) =>
        marksOfStretches(name, stretches).map((mark) => ({ ...mark, label: `${name}: ${NOT_FINITE}` })),
      ),
    ],
    bands: odd.flatMap(({ name, stretches }) => bandsOfStretches(name, stretches)),
    sync: 'report',
  }
}

/** A chart of one GPU has the findings of that one, and those of none. */
function marksOf({ gpuIndex = null }: ReportChart, marks: readonly ReportMark[]): readonly ReportMark[] {
  return gpuIndex === null ? marks : marks.filter((mark) => mark.gpuIndex === null || mark.gpuIndex === gpuIndex)
}

/** NaN stands for all that is not finite: JSON has no word for it. */
function lineOf({ name, values, color, min, max, odd = [] }: ReportChart['series'][number], index: number): ChartSeries {
  const isOdd = new Set(odd)
  return {
    label: name,
    values: isOdd.size === 0 ? values : values.map((value, point) => (isOdd.has(point) ? Number.NaN : value)),
    color: color ?? index,
    spanned: 'usual',
    ...(min && max ? { min, max } : {}),
  }
}

function oddAsWords(format: Figure): Figure {
  return (value) => (Number.isNaN(value) ? NOT_FINITE : format(value))
}

function extent({ series, stacked }: ReportChart): { readonly least: number; readonly most: number } {
  let least = Number.POSITIVE_INFINITY
  let most = Number.NEGATIVE_INFINITY
  const sums: number[] = []
  for (const { values, min = values, max = values } of series)
    values.forEach((value, index) => {
      if (value === null) return
      const sum = (sums[index] ?? 0) + value
      sums[index] = sum
      least = Math.min(least, min[index] ?? value)
      most = Math.max(most, stacked ? sum : (max[index] ?? value))
    })
  return { least, most }
}
