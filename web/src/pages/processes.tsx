import '../style/processes.css'
import { useState } from 'preact/hooks'
import { session } from '../api.ts'
import { findings, gpus, host, link, runs } from '../live/store.ts'
import { place, setQuery } from '../location.ts'
import { Empty, Panel } from '../parts/parts.tsx'
import { formatCount } from '../words.ts'
import { KillDialog } from './processes/kill-dialog.tsx'
import { findingsByPid, marksOf } from './processes/process-marks.ts'
import { filterRows, type ProcessRow, parseOrder, rowOf, sortRows } from './processes/process-rows.ts'
import { ProcessTable } from './processes/process-table.tsx'

export function ProcessesPage() {
  const { q = '', gpu = '', sort, open = '' } = place.value.query
  const [toKill, setToKill] = useState<ProcessRow | null>(null)
  const all = allRows()
  const ofGpu = gpu === '' ? all : all.filter(({ gpuLabel }) => gpuLabel === gpu)
  const order = parseOrder(sort)
  const shown = sortRows(filterRows(ofGpu, q), order)
  const canKill = session.value?.canKill ?? false
  return (
    <>
      <div class="page-head process-head">
        <h1 class="grow">Processes</h1>
        <Filters q={q} gpu={gpu} />
      </div>
      <Notes />
      {shown.length === 0 ? (
        <Panel>
          <Nobody isFiltered={all.length > 0} />
        </Panel>
      ) : (
        <ProcessTable rows={shown} order={order} openKey={open} onKill={canKill ? setToKill : null} />
      )}
      <p class="small faint" role="status">
        {shown.length === all.length ? count(all.length) : `${shown.length} of ${count(all.length)}`}
        {open !== '' &&
          !all.some(({ key }) => key === open) &&
          all.length > 0 &&
          `. Process ${open.replace('@', ' on GPU ')} is no longer there`}
        .{!canKill && all.length > 0 && ' They can be ended from here when server.allow_kill and a token are set.'}
      </p>
      {toKill && <KillDialog row={toKill} onClose={() => setToKill(null)} />}
    </>
  )
}

function allRows(): readonly ProcessRow[] {
  const byPid = findingsByPid(findings.value, runs.value)
  return gpus.value.flatMap((cell) => {
    const isCurrent = cell.freshness.value.kind === 'live'
    const { label } = cell.info.value
    return cell.processes.value.map((process) => rowOf(process, label, isCurrent, marksOf(process, byPid)))
  })
}

function count(number: number): string {
  return formatCount(number, 'process', 'processes')
}

function Filters({ q, gpu }: { readonly q: string; readonly gpu: string }) {
  return (
    <search class="toolbar">
      <label>
        GPU
        <select value={gpu} onChange={(event) => setQuery({ gpu: event.currentTarget.value || null })}>
          <option value="">all</option>
          {gpus.value.map((cell) => (
            <option key={cell.id} value={cell.info.value.label}>
              {cell.info.value.label}
            </option>
          ))}
        </select>
      </label>
      <input
        type="search"
        class="process-filter"
        aria-label="Filter by PID, user, command, container or mark"
        placeholder="Filter: user, command, PID, mark…"
        title="Every word must match. pid:12, user:ada and gpu:0 match exactly."
        value={q}
        onInput={(event) => setQuery({ q: event.currentTarget.value || null })}
      />
    </search>
  )
}

function Notes() {
  const reason = host.value?.processesReason ?? null
  const silent = gpus.value.filter((cell) => cell.sample.value?.processes === null).map((cell) => cell.info.value.label)
  const old = gpus.value.filter((cell) => !['live', 'waiting'].includes(cell.freshness.value.kind) && cell.processes.value.length > 0)
  return (
    <>
      {reason !== null && <p class="note">The owners of the processes are not known: {reason}</p>}
      {silent.length > 0 && (
        <p class="note">No process list for GPU {silent.join(', ')}: the driver does not provide one, or the GPU does not answer.</p>
      )}
      {old.length > 0 && (
        <p class="note">
          Readings of GPU {old.map((cell) => cell.info.value.label).join(', ')} are not current: gray rows may be processes that have ended.
        </p>
      )}
    </>
  )
}

function Nobody({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty title="No process matches the filter">
        <button type="button" onClick={() => setQuery({ q: null, gpu: null })}>
          Show all
        </button>
      </Empty>
    )
  if (link.value.state !== 'live') return <Empty title="Waiting for the agent…" />
  // Who cannot be seen is not nobody.
  if (gpus.value.some((cell) => cell.sample.value?.processes == null)) return <Empty title="No process is known" />
  return <Empty title="Nobody uses a GPU">Processes appear here as soon as they hold GPU memory.</Empty>
}
