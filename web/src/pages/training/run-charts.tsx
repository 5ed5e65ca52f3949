import { useMemo } from 'preact/hooks'
import { CUSTOM } from '../../../../src/core/curve-fields.ts'
import type { Finding, Reading, Run } from '../../../../src/core/model.ts'
import { bandsOfStretches, drawable, marksOfStretches, stretchesOf } from '../../chart/not-finite.ts'
import { TimeChart, type TimeChartProps } from '../../chart/time-chart.tsx'
import { setQuery } from '../../location.ts'
import { Panel } from '../../parts/parts.tsx'
import { formatBytes, formatFigure, formatSeconds } from '../../words.ts'
import { byStep, columnOf, namesOf, type RunCurve } from './curve.ts'
import { marksOfFindings, type RunAxis } from './run-marks.ts'
import { smoothed } from './smoothing.ts'
import { phaseLayers } from './step-time.ts'

interface ChartsProps {
  readonly curve: RunCurve
  readonly axis: RunAxis
  readonly smoothing: number
  readonly isLog: boolean
  readonly findings: readonly Finding[]
  readonly run: Run | null
  readonly from: number
  readonly to: number
  readonly isLoading: boolean
  /** Whether all custom figures are wanted. */
  readonly hasAll: boolean
  readonly onZoom: (from: number, to: number) => void
  readonly onReset: () => void
}

export const SYNC = 'run'
/** Above this a gradient is taken to explode. */
const GRADIENT_LIMIT = 10
const LIMIT_SHOWN_FROM = 2
const FIRST_CUSTOM = 6

export function RunCharts(props: ChartsProps) {
  const { axis, findings, isLoading, run } = props
  const curve = useMemo(() => (axis === 'step' ? byStep(props.curve) : props.curve), [props.curve, axis])
  const marks = useMemo(() => marksOfFindings(findings, axis, curve, run), [findings, axis, curve, run])
  const custom = namesOf(curve, CUSTOM)
  const shared: Shared = {
    at: axis === 'step' ? curve.steps : curve.at,
    from: props.from,
    to: props.to,
    x: axis,
    marks,
    hasMarkList: false,
    sync: SYNC,
    onZoom: props.onZoom,
    onReset: props.onReset,
    empty: isLoading ? 'Loading…' : 'This run does not report it.',
  }
  const gradients = columnOf(curve, 'gradientNorm')
  const peak = gradients === null ? 0 : Math.max(0, ...gradients.map((value) => (Number.isFinite(value) ? (value ?? 0) : 0)))
  return (
    <>
      <h2 class="visually-hidden">Course</h2>
      <div class="grid columns-2">
        <Smoothed {...props} curve={curve} shared={shared} title="Loss" field="loss" hasMarkList />
        <Smoothed
          {...props}
          curve={curve}
          shared={shared}
          title={`Gradient norm (exploding above ${GRADIENT_LIMIT})`}
          field="gradientNorm"
          limits={peak >= LIMIT_SHOWN_FROM ? [{ value: GRADIENT_LIMIT, label: `limit ${GRADIENT_LIMIT}`, tone: 'warning' }] : []}
        />
        <Plain shared={shared} curve={curve} title="Learning rate" lines={[['learningRate', 'learning rate']]} isStepped />
        <Smoothed {...props} isLog={false} curve={curve} shared={shared} title="Samples per second" field="throughputPerSecond" least={0} />
        <StepTime shared={shared} curve={curve} />
        <Plain
          shared={shared}
          curve={curve}
          title="Allocator memory"
          lines={[
            ['memoryAllocatedBytes', 'allocated'],
            ['memoryReservedBytes', 'reserved'],
            ['memoryPeakAllocatedBytes', 'peak allocated'],
            ['memoryPeakReservedBytes', 'peak reserved'],
          ]}
          format={formatBytes}
        />
        {custom.slice(0, props.hasAll ? undefined : FIRST_CUSTOM).map((name) => (
          <Smoothed key={name} {...props} isLog={false} curve={curve} shared={shared} title={name} field={CUSTOM + name} />
        ))}
      </div>
      {custom.length > FIRST_CUSTOM && (
        <p>
          <button type="button" onClick={() => setQuery({ custom: props.hasAll ? null : 'all' })}>
            {props.hasAll ? 'Show fewer figures' : `Show ${custom.length - FIRST_CUSTOM} more figures`}
          </button>
        </p>
      )}
    </>
  )
}

type Shared = Pick<TimeChartProps, 'at' | 'from' | 'to' | 'x' | 'marks' | 'hasMarkList' | 'sync' | 'onZoom' | 'onReset' | 'empty'>

interface SmoothedProps extends Pick<TimeChartProps, 'title' | 'limits' | 'least' | 'hasMarkList'> {
  readonly curve: RunCurve
  readonly shared: Shared
  readonly field: string
  readonly smoothing: number
  readonly isLog: boolean
}

/** The figures, faint, and their moving average; what is not finite is marked. */
function Smoothed({ curve, shared, field, title, smoothing, isLog, limits = [], least = null, hasMarkList = false }: SmoothedProps) {
  const drawn = useMemo(() => {
    const values = columnOf(curve, field)
    if (values === null) return null
    const name = field.startsWith(CUSTOM) ? field.slice(CUSTOM.length) : title.replace(/ \(.*/, '').toLowerCase()
    const raw = drawable(values, isLog)
    const odd = stretchesOf(shared.at, values)
    const series =
      smoothing === 0
        ? [{ label: name, values: raw, color: 0, spanned: isSparse(values) }]
        : [
            { label: 'raw', values: raw, color: 0, faint: true, spanned: isSparse(values) },
            { label: 'smoothed', values: drawable(smoothed(values, smoothing), isLog), color: 0, spanned: isSparse(values) },
          ]
    return { series, marks: marksOfStretches(name, odd), bands: bandsOfStretches(name, odd) }
  }, [curve, field, title, smoothing, isLog, shared.at])
  return (
    <Panel>
      <TimeChart
        {...shared}
        title={title}
        at={drawn ? shared.at : []}
        series={drawn?.series ?? []}
        marks={[...(shared.marks ?? []), ...(drawn?.marks ?? [])].sort((a, b) => a.at - b.at)}
        hasMarkList={hasMarkList || (drawn?.marks.length ?? 0) > 0}
        bands={drawn?.bands ?? []}
        limits={limits}
        least={least}
        log={isLog}
        format={formatFigure}
      />
    </Panel>
  )
}

/** Reported only every few steps: the line continues over the steps between. */
function isSparse(values: readonly Reading[]): boolean {
  return values.filter((value) => value === null).length > values.length * 0.3
}

interface PlainProps {
  readonly shared: Shared
  readonly curve: RunCurve
  readonly title: string
  readonly lines: readonly (readonly [field: string, label: string])[]
  readonly isStepped?: boolean
  readonly format?: (value: Reading) => string
}

function Plain({ shared, curve, title, lines, isStepped = false, format = formatFigure }: PlainProps) {
  const series = lines.flatMap(([field, label], color) => {
    const values = columnOf(curve, field)
    return values === null ? [] : [{ label, values, color, stepped: isStepped, spanned: isSparse(values) }]
  })
  return (
    <Panel>
      <TimeChart
        {...shared}
        title={title}
        at={series.length === 0 ? [] : shared.at}
        series={series}
        least={0}
        format={format}
        {...(format === formatBytes ? { unit: 'bytes' as const } : {})}
      />
    </Panel>
  )
}

function StepTime({ shared, curve }: { readonly shared: Shared; readonly curve: RunCurve }) {
  const phases = useMemo(() => phaseLayers(curve), [curve])
  if (phases === null)
    return <Plain shared={shared} curve={curve} title="Step time" lines={[['stepSeconds', 'step']]} format={formatSeconds} />
  return (
    <Panel>
      <TimeChart
        {...shared}
        title={`Step time by phase${phases.isByGpu ? ', by the clock of the GPU' : ''}`}
        series={phases.layers}
        stacked
        least={0}
        format={formatSeconds}
      />
    </Panel>
  )
}
