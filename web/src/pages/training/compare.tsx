import { useMemo, useState } from 'preact/hooks'
import { drawable, marksOfStretches, stretchesOf } from '../../chart/not-finite.ts'
import { TimeChart } from '../../chart/time-chart.tsx'
import { epoch } from '../../live/store.ts'
import { place, setQuery } from '../../location.ts'
import { Choices, Empty, Fault, Panel } from '../../parts/parts.tsx'
import { usePolled } from '../../poll.ts'
import { aligned, type CompareAxis, lineOf } from './alignment.ts'
import { FinalFigures } from './compare-table.tsx'
import { type Compared, loadCompared, nameOf } from './compared-run.ts'
import { ComparedSettings } from './compared-settings.tsx'
import { LogSwitch, SmoothingSlider } from './controls.tsx'
import { columnOf } from './curve.ts'
import { metricFormat, metricName, metricsOf } from './metric-names.ts'
import { MOST_COMPARED, parseRuns } from './run-rows.ts'
import { parseSmoothing, smoothed } from './smoothing.ts'
import { useRuns } from './use-runs.ts'

const REFRESH_MS = 15_000
const USUAL_SMOOTHING = 0.6
const LONGEST_LABEL = 40

const AXES = [
  { value: 'step', label: 'By step' },
  { value: 'elapsed', label: 'By time since the start' },
] as const

export function ComparePage() {
  const { query } = place.value
  const ids = parseRuns(query.runs)
  const polled = usePolled(
    ids.length === 0 || epoch.value === 0 ? null : `compare ${ids.join()}`,
    (signal) => Promise.all(ids.map((id) => loadCompared(id, signal))),
    REFRESH_MS,
  ).value
  const list = polled.answer ?? []
  const [moving, setMoving] = useState<number | null>(null)
  const metrics = metricsOf(list.map(({ curve }) => curve))
  const metric =
    query.metric !== undefined && (metrics.includes(query.metric) || polled.answer === null) ? query.metric : (metrics[0] ?? 'loss')
  const axis: CompareAxis = query.x === 'elapsed' ? 'elapsed' : 'step'
  const smoothing = moving ?? parseSmoothing(query.smooth, USUAL_SMOOTHING)
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <p class="small">
            <a href={`#/training${ids.length > 0 ? `?runs=${ids.map(encodeURIComponent).join()}` : ''}`}>Training</a>{' '}
            <span class="faint">/</span>
          </p>
          <h1>Compare runs</h1>
        </div>
        <AddRun ids={ids} />
      </div>
      {ids.length === 0 ? (
        <Panel>
          <Empty title="No runs are chosen">Add up to {MOST_COMPARED} runs above, or tick them in the list of runs.</Empty>
        </Panel>
      ) : (
        <>
          <div class="toolbar">
            <label>
              Figure
              <select value={metric} onChange={(event) => setQuery({ metric: event.currentTarget.value, s0: null, s1: null })}>
                {(metrics.length === 0 ? [metric] : metrics).map((field) => (
                  <option key={field} value={field}>
                    {metricName(field)}
                  </option>
                ))}
              </select>
            </label>
            <Choices<CompareAxis>
              label="Axis"
              options={AXES}
              value={axis}
              onChoose={(value) => setQuery({ x: value === 'step' ? null : value, s0: null, s1: null })}
            />
            <SmoothingSlider value={smoothing} onMove={setMoving} />
            <LogSwitch isOn={query.log === '1'} />
          </div>
          <Fault text={polled.fault ?? list.find(({ fault }) => fault !== null)?.fault ?? null} />
          <Panel>
            <h2 class="visually-hidden">Course</h2>
            <CompareChart
              list={list}
              metric={metric}
              axis={axis}
              smoothing={smoothing}
              isLog={query.log === '1'}
              isLoading={polled.answer === null}
            />
          </Panel>
          <FinalFigures list={list} metric={metric} ids={ids} />
          <ComparedSettings list={list} />
        </>
      )}
    </>
  )
}

function shortened(name: string): string {
  return name.length > LONGEST_LABEL ? `${name.slice(0, LONGEST_LABEL - 1)}…` : name
}

interface ChartProps {
  readonly list: readonly Compared[]
  readonly metric: string
  readonly axis: CompareAxis
  readonly smoothing: number
  readonly isLog: boolean
  readonly isLoading: boolean
}

function CompareChart({ list, metric, axis, smoothing, isLog, isLoading }: ChartProps) {
  const { query } = place.value
  const drawn = useMemo(() => {
    const told = list.flatMap((one, color) => (columnOf(one.curve, metric) ? [{ one, color, line: lineOf(one.curve, metric, axis) }] : []))
    const names = told.map(({ one }) => shortened(nameOf(one)))
    // Two runs of the same name are distinguished by their ids.
    const label = (index: number) => {
      const name = names[index] ?? ''
      return names.filter((other) => other === name).length > 1 ? `${name} (${told[index]?.one.id})` : name
    }
    const { x, columns } = aligned(told.map(({ line }) => ({ x: line.x, values: smoothed(line.values, smoothing) })))
    return {
      x,
      series: told.map(({ color }, index) => ({
        label: label(index),
        values: drawable(columns[index] ?? [], isLog),
        color,
        spanned: true,
      })),
      marks: told.flatMap(({ line }, index) => marksOfStretches(label(index), stretchesOf(line.x, line.values))),
    }
  }, [list, metric, axis, smoothing, isLog])
  const zoom = Number(query.s1) > Number(query.s0) ? { from: Number(query.s0), to: Number(query.s1) } : null
  return (
    <TimeChart
      title={`${metricName(metric)}${smoothing > 0 ? ', smoothed' : ''}`}
      at={drawn.x}
      series={drawn.series}
      marks={drawn.marks}
      from={zoom?.from ?? drawn.x[0] ?? 0}
      to={zoom?.to ?? Math.max(1, drawn.x.at(-1) ?? 1)}
      x={axis}
      log={isLog}
      format={metricFormat(metric)}
      {...(metric.endsWith('Bytes') ? { unit: 'bytes' as const } : {})}
      height={360}
      onZoom={(from, to) => setQuery({ s0: String(Math.floor(from)), s1: String(Math.ceil(to)) })}
      onReset={() => setQuery({ s0: null, s1: null })}
      empty={isLoading ? 'Loading…' : 'None of these runs reports this figure.'}
    />
  )
}

function AddRun({ ids }: { readonly ids: readonly string[] }) {
  const others = (useRuns().value.rows ?? []).filter(({ id }) => !ids.includes(id))
  return (
    <label>
      Add
      <select
        value=""
        disabled={ids.length >= MOST_COMPARED || others.length === 0}
        onChange={(event) => setQuery({ runs: [...ids, event.currentTarget.value].join() })}
      >
        <option value="">{ids.length >= MOST_COMPARED ? `${MOST_COMPARED} at most` : 'a run…'}</option>
        {others.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}
