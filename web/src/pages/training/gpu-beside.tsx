import { useMemo } from 'preact/hooks'
import type { Finding, GpuField, Run } from '../../../../src/core/model.ts'
import { TimeChart } from '../../chart/time-chart.tsx'
import { presentOf, useHistory } from '../../history.ts'
import type { GpuCell } from '../../live/gpu-cell.ts'
import { setQuery } from '../../location.ts'
import { Fault, Panel } from '../../parts/parts.tsx'
import type { TimeRange } from '../../time-range.ts'
import { formatBytes, formatPercent, formatWatts, powerCap, shortModel } from '../../words.ts'
import type { RunCurve } from './curve.ts'
import { SYNC } from './run-charts.tsx'
import { marksOfFindings, type RunAxis } from './run-marks.ts'

interface BesideProps {
  readonly from: number
  readonly to: number
  readonly onZoom: (from: number, to: number) => void
  readonly onReset: () => void
  readonly cell: GpuCell
  /** More than one: the run has several. */
  readonly choices: readonly GpuCell[]
  readonly isGuess: boolean
  readonly axis: RunAxis
  readonly isMoving: boolean
  readonly findings: readonly Finding[]
  readonly run: Run | null
  readonly curve: RunCurve
}

const FIELDS: readonly GpuField[] = ['memoryUsedBytes', 'utilizationRatio', 'powerWatts']

export function GpuBeside(props: BesideProps) {
  const { cell, choices, isGuess, axis } = props
  const info = cell.info.value
  const { label } = info
  return (
    <>
      <div class="toolbar">
        <h2 class="gpu-heading">
          GPU <a href={`#/gpu/${encodeURIComponent(label)}`}>{label}</a> <span class="faint">{shortModel(info)}</span>
        </h2>
        {choices.length > 1 && (
          <label>
            <span class="visually-hidden">GPU</span>
            <select value={label} onChange={(event) => setQuery({ gpu: event.currentTarget.value })}>
              {choices.map(({ id, info }) => (
                <option key={id} value={info.value.label}>
                  {info.value.label}
                </option>
              ))}
            </select>
          </label>
        )}
        {isGuess && <span class="small faint">Nobody said which GPU it is on; what it reserved fits this one.</span>}
        {axis === 'step' && (
          <>
            <span class="small faint">GPU readings have no steps.</span>
            <button type="button" onClick={() => setQuery({ x: null })}>
              Show over time
            </button>
          </>
        )}
      </div>
      {axis === 'time' && <Charts key={cell.id} {...props} />}
    </>
  )
}

function Charts({ cell, from, to, isMoving, findings, run, curve, onZoom, onReset }: BesideProps) {
  const track = useHistory(cell, FIELDS, rangeOf(cell, from, to, isMoving)).value
  const info = cell.info.value
  const marks = useMemo(() => marksOfFindings(findings, 'time', curve, run), [findings, curve, run])
  const shared = { at: track.at, from, to, sync: SYNC, marks, hasMarkList: false, onZoom, onReset, empty: emptyWords(track.state) } as const
  const line = (field: GpuField, label: string) => [
    { label, values: track.columns[field] ?? [], area: true, min: track.min?.[field], max: track.max?.[field] },
  ]
  const total = info.memoryTotalBytes
  const cap = powerCap(info)
  return (
    <>
      <Fault text={track.fault} />
      <div class="grid columns-2">
        <Panel>
          <TimeChart
            {...shared}
            title="GPU memory in use"
            series={line('memoryUsedBytes', 'in use')}
            format={formatBytes}
            least={0}
            most={total}
            limits={total === null ? [] : [{ value: total, label: `capacity ${formatBytes(total)}` }]}
          />
        </Panel>
        <Panel>
          <TimeChart {...shared} title="GPU busy" series={line('utilizationRatio', 'busy')} format={formatPercent} least={0} most={1} />
        </Panel>
        <Panel>
          <TimeChart
            {...shared}
            title="GPU power"
            series={line('powerWatts', 'draw')}
            format={formatWatts}
            least={0}
            limits={cap === null ? [] : [{ value: cap, label: 'cap', tone: 'warning' }]}
          />
        </Panel>
      </div>
    </>
  )
}

function emptyWords(state: 'loading' | 'ready' | 'failed'): string {
  return state === 'loading' ? 'Loading…' : 'The agent has no readings for this time range.'
}

const SHORTEST_MS = 60_000

/** A run that goes on: in spans that grow by a tenth, so that its past is not asked for again every second. */
function rangeOf(cell: GpuCell, from: number, to: number, isMoving: boolean): TimeRange {
  if (!isMoving) return { kind: 'fixed', from: Math.floor(from), to: Math.ceil(to) }
  const span = Math.max(SHORTEST_MS, presentOf(cell) - from)
  const ms = SHORTEST_MS * 1.1 ** Math.ceil(Math.log(span / SHORTEST_MS) / Math.log(1.1))
  return { kind: 'last', name: `run ${Math.round(ms)}`, ms }
}
