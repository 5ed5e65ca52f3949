/** The charts of one GPU, with one crosshair and one span of time. */

import { signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { ProcessHistoryAnswer } from '../../../../src/core/kinds.ts'
import { isGpuOfRun } from '../../../../src/core/known/about-gpu.ts'
import type { GpuField, Reading } from '../../../../src/core/model.ts'
import { ask } from '../../api.ts'
import { type ChartSeries, TimeChart, type TimeChartProps } from '../../chart/time-chart.tsx'
import { presentOf, type Track, useHistory } from '../../history.ts'
import type { GpuCell } from '../../live/gpu-cell.ts'
import { epoch, runs } from '../../live/store.ts'
import { Badge, Fault, Panel } from '../../parts/parts.tsx'
import { boundsOf, type TimeRange, zoomOut, zoomTo } from '../../time-range.ts'
import {
  clockTime,
  formatBytes,
  formatDuration,
  formatMegahertz,
  formatPercent,
  formatRate,
  formatWatts,
  formatWhole,
} from '../../words.ts'
import { ledgerLayers } from './ledger-layers.ts'
import { marksOf, useHappenings } from './marks.ts'
import { throttleBands, totals } from './throttle-bands.ts'

const FIELDS: readonly GpuField[] = [
  'memoryUsedBytes',
  'memoryReservedBytes',
  'utilizationRatio',
  'memoryUtilizationRatio',
  'smActiveRatio',
  'tensorActiveRatio',
  'dramActiveRatio',
  'temperatureCelsius',
  'junctionTemperatureCelsius',
  'memoryTemperatureCelsius',
  'powerWatts',
  'smClockHertz',
  'memoryClockHertz',
  'clockEventReasons',
  'pcieTxBytesPerSecond',
  'pcieRxBytesPerSecond',
  'nvlinkTxBytesPerSecond',
  'nvlinkRxBytesPerSecond',
  'xgmiTxBytesPerSecond',
  'xgmiRxBytesPerSecond',
]

const MOST_MARKS = 8
const PROCESS_REFRESH_MS = 10_000
/** Who had the memory is known for a day. */
const PROCESS_SPAN_MS = 86_400_000

const celsius = (value: Reading) => formatWhole(value, '°C')

export function GpuCharts({ cell, range }: { readonly cell: GpuCell; readonly range: TimeRange }) {
  const track = useHistory(cell, FIELDS, range).value
  const processes = useProcessHistory(cell, range)
  const happened = useHappenings(cell, range).value
  const info = cell.info.value
  const own = runs.value
  const marks = useMemo(
    () =>
      marksOf(
        happened,
        [...own.values()].filter((run) => run.gpus.some((name) => isGpuOfRun(info, name))),
      ),
    [happened, own, info],
  )
  const { at, columns } = track
  // Of averages the stack shows the most, as it does of processes: a peak is what runs out of memory.
  const peaks = track.max ?? columns
  const layers = useMemo(
    () => ledgerLayers({ at, used: peaks.memoryUsedBytes ?? [], reserved: peaks.memoryReservedBytes ?? [] }, processes.value),
    [track, processes.value],
  )
  const hasProcesses = track.to - track.from <= PROCESS_SPAN_MS
  const masks = (track.stepMs > 0 ? track.max?.clockEventReasons : columns.clockEventReasons) ?? []
  const bands = useMemo(() => throttleBands(at, masks, track.stepMs), [track])
  const shared = {
    at,
    from: track.from,
    to: track.to,
    sync: 'gpu',
    marks,
    hasMarkList: false,
    onZoom: zoomTo,
    onReset: zoomOut,
    empty: track.state === 'loading' ? 'Loading…' : 'The agent has no readings for this time range.',
  } satisfies Partial<TimeChartProps>
  const links = known(track, [
    ['pcieTxBytesPerSecond', 'PCIe sent'],
    ['pcieRxBytesPerSecond', 'PCIe received'],
    ['nvlinkTxBytesPerSecond', 'NVLink sent'],
    ['nvlinkRxBytesPerSecond', 'NVLink received'],
    ['xgmiTxBytesPerSecond', 'XGMI sent'],
    ['xgmiRxBytesPerSecond', 'XGMI received'],
  ])
  const total = info.memoryTotalBytes
  const shown = marks.filter(({ at: moment }) => moment >= track.from && moment <= track.to)
  return (
    <>
      <Fault text={track.fault} />
      <p class="small faint" aria-live="polite">
        {track.stepMs > 0
          ? `Averages of ${formatDuration(track.stepMs)}; the band shows the least and the most inside each.`
          : 'Every sample as it was taken.'}{' '}
        Drag to zoom, double-click to go back.
      </p>
      <div class="grid columns-2">
        <Panel>
          <TimeChart
            {...shared}
            title={track.stepMs > 0 && hasProcesses ? 'Memory, most of each step' : 'Memory'}
            stacked={hasProcesses}
            series={
              hasProcesses
                ? layers.map((layer, index) => ({ ...layer, color: layer.label === 'driver reserve' ? 6 : index }))
                : known(track, [['memoryUsedBytes', 'used']])
            }
            format={formatBytes}
            least={0}
            most={total}
            limits={total === null ? [] : [{ value: total, label: `capacity ${formatBytes(total)}` }]}
          />
        </Panel>
        <Panel>
          <TimeChart
            {...shared}
            title="Activity"
            series={known(track, [
              ['utilizationRatio', 'GPU busy'],
              ['smActiveRatio', 'SM active'],
              ['tensorActiveRatio', 'tensor cores'],
              ['dramActiveRatio', 'DRAM'],
              ['memoryUtilizationRatio', 'memory controller'],
            ])}
            format={formatPercent}
            least={0}
            most={1}
          />
        </Panel>
        <Panel>
          <TimeChart
            {...shared}
            title="Temperature"
            series={known(track, [
              ['temperatureCelsius', 'core'],
              ['junctionTemperatureCelsius', 'hottest spot'],
              ['memoryTemperatureCelsius', 'memory'],
            ])}
            format={celsius}
            least={20}
            limits={[...limit(info.temperatureSlowdownCelsius, 'slows down'), ...limit(info.temperatureShutdownCelsius, 'shuts down')]}
          />
        </Panel>
        <Panel>
          <TimeChart
            {...shared}
            title="Power"
            series={known(track, [['powerWatts', 'draw', true]])}
            format={formatWatts}
            least={0}
            limits={limit(info.powerLimitWatts, 'cap', 'warning')}
          />
        </Panel>
        <Panel>
          <TimeChart
            {...shared}
            title="Clocks"
            series={known(track, [
              ['smClockHertz', 'GPU'],
              ['memoryClockHertz', 'memory'],
            ])}
            format={formatMegahertz}
            least={0}
            bands={bands}
          />
          <div class="toolbar small">
            {[...totals(bands)].map(([label, { ms, tone }]) => (
              <Badge key={label} tone={tone}>
                {label} {formatDuration(ms)}
              </Badge>
            ))}
            {bands.length === 0 && at.length > 0 && <span class="faint">Clocks were not limited.</span>}
          </div>
        </Panel>
        {links.length > 0 && (
          <Panel>
            <TimeChart {...shared} title="Links" series={links} format={formatRate} least={0} />
          </Panel>
        )}
      </div>
      {/* Below the charts: what is added to it must not push them away. */}
      {shown.length > 0 && (
        <ul class="chart-marks happened" aria-label="What happened in this time range">
          {shown.slice(-MOST_MARKS).map((mark) => (
            <li key={`${mark.at}${mark.label}`} class={`tone-${mark.tone}`}>
              <time>{clockTime(mark.at, track.to)}</time> {mark.label}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

function limit(value: Reading, label: string, tone: 'critical' | 'warning' = 'critical') {
  return value === null ? [] : [{ value, label, tone }]
}

/** Lines for what this card reports. */
function known(track: Track, wanted: readonly (readonly [GpuField, string, boolean?])[]): readonly ChartSeries[] {
  return wanted.flatMap(([field, label, area], color) => {
    const values = track.columns[field] ?? []
    if (values.length === 0 || values.every((value) => value === null)) return []
    return [{ label, values, color, ...(area ? { area } : {}), min: track.min?.[field], max: track.max?.[field] }]
  })
}

function useProcessHistory(cell: GpuCell, range: TimeRange) {
  const found = useMemo(() => signal<ProcessHistoryAnswer | null>(null), [cell])
  const rangeKey = range.kind === 'last' ? range.name : `${range.from}-${range.to}`
  useEffect(() => {
    const stop = new AbortController()
    const load = () => {
      if (document.hidden) return
      const { from, to } = boundsOf(range, presentOf(cell))
      ask<ProcessHistoryAnswer>(
        '/api/v1/processes/history',
        { gpu: cell.id, from: Math.floor(from), to: Math.ceil(to) },
        { signal: stop.signal },
      ).then(
        (answer) => {
          found.value = answer
        },
        // Without it the stack has one layer less; the history says by itself when the agent is away.
        () => undefined,
      )
    }
    load()
    const timer = range.kind === 'last' ? setInterval(load, PROCESS_REFRESH_MS) : undefined
    return () => {
      stop.abort()
      clearInterval(timer)
    }
  }, [cell, rangeKey, epoch.value])
  return found
}
