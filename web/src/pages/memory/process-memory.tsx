/** Who had how much of this GPU's memory, over time. */

import type { ReadonlySignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { ProcessHistoryAnswer } from '../../../../src/core/kinds.ts'
import { ask } from '../../api.ts'
import { TimeChart } from '../../chart/time-chart.tsx'
import { presentOf, type Track } from '../../history.ts'
import type { GpuCell } from '../../live/gpu-cell.ts'
import { Fault, Panel } from '../../parts/parts.tsx'
import { usePolled } from '../../poll.ts'
import { boundsOf, type TimeRange, zoomOut, zoomTo } from '../../time-range.ts'
import { formatBytes } from '../../words.ts'
import { type ProcessRow, processStack } from './process-stack.ts'

const REFRESH_MS = 10_000

interface PanelProps {
  readonly cell: GpuCell
  readonly range: TimeRange
  readonly track: ReadonlySignal<Track>
}

export function ProcessMemoryPanel({ cell, range, track }: PanelProps) {
  const rangeKey = range.kind === 'last' ? range.name : `${range.from}-${range.to}`
  const polled = usePolled(
    `${cell.id} ${rangeKey}`,
    (signal) => {
      const { from, to } = boundsOf(range, presentOf(cell))
      const query = { gpu: cell.id, from: Math.floor(from), to: Math.ceil(to) }
      return ask<ProcessHistoryAnswer>('/api/v1/processes/history', query, { signal })
    },
    range.kind === 'last' ? REFRESH_MS : null,
  )
  const { answer, fault } = polled.value
  // Read with each answer: a stack that moved every second would only show when the device was read.
  const stack = useMemo(() => {
    const { at, columns } = track.peek()
    return answer && processStack(answer, { at, used: columns.memoryUsedBytes ?? [] })
  }, [answer])
  const { from, to } = boundsOf(range, presentOf(cell))
  const total = cell.info.value.memoryTotalBytes
  const isUnknown = cell.sample.value?.processes === null
  const empty = answer ? 'Nobody used this GPU in this span of time.' : 'Loading…'
  return (
    <Panel title="Processes" aside={<a href={`#/processes?gpu=${encodeURIComponent(cell.info.value.label)}`}>All details</a>}>
      <Fault text={fault} />
      <TimeChart
        title="Memory of each process"
        at={stack?.layers.length ? stack.at : []}
        series={stack?.layers ?? []}
        stacked
        from={from}
        to={to}
        format={formatBytes}
        least={0}
        most={total}
        limits={total === null ? [] : [{ value: total, label: `capacity ${formatBytes(total)}` }]}
        height={200}
        onZoom={zoomTo}
        onReset={zoomOut}
        empty={isUnknown ? 'The driver does not say who uses this GPU.' : empty}
      />
      {stack && stack.rows.length > 0 && <Rows rows={stack.rows} />}
    </Panel>
  )
}

function Rows({ rows }: { readonly rows: readonly ProcessRow[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section class="scroll-x tall" aria-label="Processes in this time range" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th>Owner</th>
            <th class="number">PID</th>
            <th class="number">Now</th>
            <th class="number">Most</th>
            <th>Command</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, pid, user, name, command, nowBytes, peakBytes, color }) => (
            <tr key={key}>
              <td class="nowrap">
                <i class={`swatch ${color === null ? 'series-8' : `series-${color + 1}`}`} /> {user ?? 'unknown'}
              </td>
              <td class="number mono">{pid}</td>
              <td class="number">{nowBytes === null ? <span class="faint">gone</span> : formatBytes(nowBytes)}</td>
              <td class="number">{formatBytes(peakBytes)}</td>
              <td class="mono small cut command-cell" title={command ?? name ?? ''}>
                {command ?? name ?? 'unknown'}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
