/** A chart over time (or over steps): a shared crosshair, zoom by dragging, limits, bands and marks. */
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import type { Reading } from '../../../src/core/model.ts'
import type { Tone } from '../words.ts'
import { ChartFrame } from './chart-frame.tsx'
import { colors } from './colors.ts'
import { type MountedChart, mountChart, USUAL_HEIGHT_PX } from './mount.ts'
import { type ChartData, chartData } from './options.ts'
import type { SeriesColor } from './palette.ts'

export interface ChartSeries {
  readonly label: string
  readonly values: readonly Reading[]
  /** Extremes inside each averaged step, drawn as a band. */
  readonly min?: readonly Reading[] | undefined
  readonly max?: readonly Reading[] | undefined
  /** Position in the palette; the series' own position when left out. */
  readonly color?: SeriesColor
  readonly dash?: boolean
  readonly area?: boolean
  /** Keeps its value until the next point (clocks, learning rates). */
  readonly stepped?: boolean
  /** In the background of another line: the raw figures behind the smoothed ones. */
  readonly faint?: boolean
  /** The axis has moments of other lines too: this one goes on over them, and the legend shows its last figure. `usual`: not over much longer silence than usual. */
  readonly spanned?: boolean | 'usual'
}

export interface ChartLimit {
  readonly value: number
  readonly label: string
  readonly tone?: Tone
  /** Too far up for the axis, which would press all else to the ground: only its name is shown, with an arrow. */
  readonly isFar?: boolean
}

/** A stretch of time with a meaning: clocks were limited, the agent was away. */
export interface ChartBand {
  readonly from: number
  readonly to: number
  readonly label: string
  readonly tone: Tone
}

export interface ChartMark {
  readonly at: number
  readonly label: string
  readonly tone: Tone
}

/** What may come: the area between two lines, from now on. */
export interface ChartFan {
  readonly at: readonly number[]
  readonly low: readonly Reading[]
  readonly middle: readonly Reading[]
  readonly high: readonly Reading[]
  readonly label: string
}

export interface TimeChartProps {
  readonly title: string
  /** Epoch milliseconds; steps with `x: 'step'`; milliseconds since a beginning with `x: 'elapsed'`. */
  readonly at: readonly number[]
  readonly series: readonly ChartSeries[]
  readonly from: number
  readonly to: number
  /** A figure with its unit: for the axis, the legend and the crosshair. */
  readonly format: (value: Reading) => string
  readonly x?: 'time' | 'step' | 'elapsed'
  readonly stacked?: boolean
  readonly log?: boolean
  /** The axis covers at least these; null: follows the data. */
  readonly least?: number | null
  readonly most?: number | null
  readonly limits?: readonly ChartLimit[]
  readonly bands?: readonly ChartBand[]
  readonly marks?: readonly ChartMark[]
  /** Marks are listed below the chart unless another chart does so already. */
  readonly hasMarkList?: boolean
  readonly fan?: ChartFan | null
  /** Charts with the same key share their crosshair. */
  readonly sync?: string
  readonly height?: number
  readonly onZoom?: (from: number, to: number) => void
  readonly onReset?: () => void
  readonly empty?: string
}

export function TimeChart(props: TimeChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const legend = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const mounted = useRef<MountedChart | null>(null)
  const latest = useRef(props)
  latest.current = props
  const palette = colors.value
  const height = props.height ?? USUAL_HEIGHT_PX
  const isEmpty = props.at.length === 0 && !props.fan
  const data: ChartData = useMemo(() => chartData(props), [props.at, props.series, props.stacked, props.fan])
  const shape = JSON.stringify([
    props.series.map(({ label, color, dash, area, stepped, faint, spanned, max }) => [
      label,
      color,
      dash,
      area,
      stepped,
      faint,
      spanned,
      max !== undefined,
    ]),
    props.limits,
    props.stacked,
    props.log,
    props.x,
    props.least,
    props.most,
    props.fan?.label,
    height,
    isEmpty,
  ])

  useEffect(() => {
    const element = box.current
    if (!element || isEmpty) return
    const chart = mountChart({ box: element, current: () => latest.current, data, palette, height, legend })
    mounted.current = chart
    plot.current = chart.plot
    return () => {
      chart.remove()
      mounted.current = plot.current = null
    }
  }, [shape, palette])

  useEffect(() => {
    mounted.current?.update(data)
  }, [data, props.from, props.to, props.marks, props.bands])

  return <ChartFrame {...props} plot={plot} box={box} legend={legend} height={height} isEmpty={isEmpty} />
}
