/** All that is known of one process: who it is, what it held over time, what was found, and how to make it welcome. */
import type { ProcessHistoryAnswer } from '../../../../src/core/kinds.ts'
import type { ConfigAnswer } from '../../answers.ts'
import { ask } from '../../api.ts'
import { TimeChart } from '../../chart/time-chart.tsx'
import { presentOf } from '../../history.ts'
import { now } from '../../live/agent-clock.ts'
import { present } from '../../live/present.ts'
import { gpuCell } from '../../live/store.ts'
import { CopyButton, Fault } from '../../parts/parts.tsx'
import { RangePicker } from '../../parts/range-picker.tsx'
import { usePolled } from '../../poll.ts'
import { boundsOf, currentRange, zoomOut, zoomTo } from '../../time-range.ts'
import { clockTime, formatAge, formatBytes, NOT_AVAILABLE } from '../../words.ts'
import { allowEntries, policyOf } from './allow-list.ts'
import type { ProcessRow } from './process-rows.ts'

const REFRESH_MS = 10_000

export function ProcessDetails({ row }: { readonly row: ProcessRow }) {
  return (
    <div class="process-details">
      <h2 class="visually-hidden">Process {row.process.pid}</h2>
      {row.marks.length > 0 && (
        <ul class="list process-marks">
          {row.marks.map(({ label, tone, words }) => (
            <li key={label} class={`tone-${tone}`}>
              {words}
            </li>
          ))}
        </ul>
      )}
      <Facts row={row} />
      <MemoryHistory row={row} />
      <AllowList row={row} />
    </div>
  )
}

function Facts({ row }: { readonly row: ProcessRow }) {
  const { process, command } = row
  const { info } = process
  if (!info)
    return (
      <p class="small">
        Only the driver knows this process: it is another user's or of another container, and cannot be looked up from here.
      </p>
    )
  const facts: readonly (readonly [string, string | null])[] = [
    ['Executable', info.executable],
    ['Parent', info.parentPid === null ? null : `PID ${info.parentPid}`],
    [
      'Running since',
      info.startedAt === null ? null : `${clockTime(info.startedAt, present())} (${formatAge(present() - info.startedAt)})`,
    ],
    ['User', info.user === null ? null : `${info.user}${info.uid === null ? '' : ` (uid ${info.uid})`}`],
    ['State', info.state === null ? null : (STATES[info.state] ?? info.state)],
    ['Container', info.container],
    ['Pod', info.pod],
    ['Slurm job', info.slurmJob],
  ]
  return (
    <>
      <div class="process-line">
        <span class="label">Command</span>
        <code class="whole">{command ?? NOT_AVAILABLE}</code>
        {command !== null && <CopyButton text={command} />}
      </div>
      <dl class="process-facts">
        {facts
          .filter(([name, value]) => value !== null || !OPTIONAL.has(name))
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value ?? NOT_AVAILABLE}</dd>
            </div>
          ))}
      </dl>
    </>
  )
}

/** Not worth a line where there is none. */
const OPTIONAL = new Set(['Container', 'Pod', 'Slurm job'])

const STATES: Readonly<Record<string, string>> = {
  R: 'running',
  S: 'sleeping',
  D: 'waits in the kernel (D)',
  Z: 'zombie (Z)',
  T: 'stopped',
  t: 'stopped by a debugger',
  I: 'idle',
}

function MemoryHistory({ row }: { readonly row: ProcessRow }) {
  const { process, gpuLabel } = row
  const range = currentRange()
  const cell = gpuCell(gpuLabel)
  const bounds = boundsOf(range, cell ? presentOf(cell) : now.value)
  const rangeKey = range.kind === 'last' ? range.name : `${range.from}-${range.to}`
  const { answer, fault } = usePolled(
    `${row.key} ${rangeKey}`,
    (signal) =>
      ask<ProcessHistoryAnswer>(
        '/api/v1/processes/history',
        { gpu: process.gpu, from: Math.floor(bounds.from), to: Math.ceil(bounds.to) },
        { signal },
      ),
    range.kind === 'last' ? REFRESH_MS : null,
  ).value
  const startedAt = process.info?.startedAt ?? null
  const own = answer?.processes.find(
    (one) => one.pid === process.pid && (startedAt === null || one.startedAt === null || one.startedAt === startedAt),
  )
  return (
    <div class="process-history">
      <RangePicker />
      <Fault text={fault} />
      <TimeChart
        title={`GPU memory of process ${process.pid}`}
        at={own ? (answer?.at ?? NONE) : NONE}
        series={[{ label: 'GPU memory', values: own?.memoryUsedBytes ?? NONE, area: true }]}
        {...bounds}
        format={formatBytes}
        least={0}
        height={140}
        empty={answer === null ? 'Asking…' : 'No readings of this process in this time range.'}
        onZoom={zoomTo}
        onReset={zoomOut}
      />
    </div>
  )
}

const NONE: readonly number[] = []

function AllowList({ row }: { readonly row: ProcessRow }) {
  const { answer } = usePolled('config', (signal) => ask<ConfigAnswer>('/api/v1/config', {}, { signal }), null).value
  const { info } = row.process
  if (!info) return null
  const entries = allowEntries(info, row.gpuLabel, policyOf(answer?.settings ?? []))
  return (
    <details class="allow-list" open={row.marks.some(({ label }) => label === 'intruder')}>
      <summary>Allow-list entry to copy</summary>
      <p class="small faint">
        Into {answer?.file ? <code>{answer.file}</code> : 'the configuration file'}, in place of the list of the same name; then start the
        agent again.
      </p>
      <div class="allow-entries">
        {entries.map(({ name, label, meaning, yaml }) => (
          <div key={name} class="allow-entry">
            <div class="process-line">
              <strong class="grow">{label}</strong>
              <CopyButton text={yaml} />
            </div>
            <pre>{yaml}</pre>
            <p class="tiny faint">{meaning}</p>
          </div>
        ))}
      </div>
    </details>
  )
}
