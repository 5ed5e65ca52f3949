import { namesGpu } from '../../../../src/core/known/about-gpu.ts'
import { present } from '../../live/present.ts'
import { gpus } from '../../live/store.ts'
import { go, place, setQuery } from '../../location.ts'
import { Choices, Empty, Fault, Panel, ScrollBox } from '../../parts/parts.tsx'
import { clockTime, formatAge, formatFigure, formatPercent, NOT_AVAILABLE } from '../../words.ts'
import { filteredRows, MOST_COMPARED, parseRuns, type RunRow, type StateFilter } from './run-rows.ts'
import { ProvenanceBadge, StateBadge } from './run-state.tsx'
import { useRuns } from './use-runs.ts'

const STATES = [
  { value: 'all', label: 'All' },
  { value: 'running', label: 'Running' },
  { value: 'ended', label: 'Ended' },
] as const

export function RunListPage() {
  const { rows, fault } = useRuns().value
  const { q = '', state: wanted, runs } = place.value.query
  const state = STATES.find(({ value }) => value === wanted)?.value ?? 'all'
  const chosen = parseRuns(runs)
  const shown = filteredRows(rows ?? [], q, state)
  return (
    <>
      <div class="page-head">
        <h1 class="grow">Training</h1>
        <label class="visually-hidden" for="run-filter">
          Filter runs
        </label>
        <input
          id="run-filter"
          type="search"
          placeholder="Filter by name, user, GPU…"
          value={q}
          onInput={(event) => setQuery({ q: event.currentTarget.value || null })}
        />
        <Choices<StateFilter>
          label="Which runs"
          options={STATES}
          value={state}
          onChoose={(value) => setQuery({ state: value === 'all' ? null : value })}
        />
        <CompareButton chosen={chosen} />
      </div>
      <Fault text={fault} />
      {rows === null ? (
        <p class="faint">Loading…</p>
      ) : rows.length === 0 ? (
        <NoRuns />
      ) : shown.length === 0 ? (
        <Panel>
          <Empty title="No run matches">There are {rows.length} runs.</Empty>
        </Panel>
      ) : (
        <RunTable rows={shown} chosen={chosen} />
      )}
    </>
  )
}

function CompareButton({ chosen }: { readonly chosen: readonly string[] }) {
  return (
    <button
      type="button"
      class={chosen.length > 1 ? 'primary' : ''}
      disabled={chosen.length < 2}
      title={`Choose two to ${MOST_COMPARED} runs in the list`}
      onClick={() => go(['training', 'compare'], { runs: chosen.join() })}
    >
      Compare{chosen.length > 1 ? ` ${chosen.length} runs` : ''}
    </button>
  )
}

function NoRuns() {
  return (
    <Panel>
      <div class="empty">
        <strong>No training runs yet</strong>
        <p class="small">Start one with</p>
        <pre>gpuwarden run -- python train.py</pre>
        <p class="small">or add the callback of the SDK to the training code: two lines, and loss, step time and memory appear here.</p>
      </div>
    </Panel>
  )
}

function RunTable({ rows, chosen }: { readonly rows: readonly RunRow[]; readonly chosen: readonly string[] }) {
  const at = present()
  return (
    <div class="panel flush">
      <ScrollBox label="Runs">
        <table class="runs">
          <thead>
            <tr>
              <th>
                <span class="visually-hidden">Compare</span>
              </th>
              <th>Run</th>
              <th>State</th>
              <th class="number">Step</th>
              <th class="number">Left</th>
              <th class="number">Loss</th>
              <th class="number">Samples/s</th>
              <th>GPUs</th>
              <th>User</th>
              <th>Framework</th>
              <th>Started</th>
              <th class="number">Duration</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Row key={row.id} row={row} at={at} chosen={chosen} />
            ))}
          </tbody>
        </table>
      </ScrollBox>
    </div>
  )
}

function Row({ row, at, chosen }: { readonly row: RunRow; readonly at: number; readonly chosen: readonly string[] }) {
  const isChosen = chosen.includes(row.id)
  const isOdd = row.loss !== null && !Number.isFinite(row.loss)
  const choose = () => setQuery({ runs: (isChosen ? chosen.filter((id) => id !== row.id) : [...chosen, row.id]).join() || null })
  const silence = row.state === 'silent' && row.lastStepAt !== null ? `no step for ${formatAge(at - row.lastStepAt)}` : undefined
  return (
    <tr>
      <td>
        <input
          type="checkbox"
          aria-label={`Compare ${row.name}`}
          checked={isChosen}
          disabled={!isChosen && chosen.length >= MOST_COMPARED}
          onChange={choose}
        />
      </td>
      <td class="run-name">
        <a class="cut" href={`#/training/${encodeURIComponent(row.id)}`} title={`${row.name} (${row.id})`}>
          {row.name}
        </a>
      </td>
      <td class="nowrap">
        <StateBadge state={row.state} {...(silence === undefined ? {} : { title: silence })} /> <ProvenanceBadge of={row.provenance} />
      </td>
      <td class="number" data-label="Step">
        {row.step ?? NOT_AVAILABLE}
        {row.totalSteps !== null && <span class="faint"> / {row.totalSteps}</span>}
        {row.progress !== null && <progress value={row.progress} max={1} aria-label={`${formatPercent(row.progress)} done`} />}
      </td>
      <td class="number" data-label="Left">
        {row.etaMs === null ? <span class="faint">{NOT_AVAILABLE}</span> : formatAge(row.etaMs)}
      </td>
      <td class={`number ${isOdd ? 'tone-critical' : ''}`} data-label="Loss">
        {formatFigure(row.loss)}
      </td>
      <td class="number" data-label="Samples/s">
        {formatFigure(row.throughputPerSecond)}
      </td>
      <td class="nowrap" data-label="GPUs">
        {row.gpus.length === 0 ? <span class="faint">{NOT_AVAILABLE}</span> : <Gpus names={row.gpus} />}
      </td>
      <td data-label="User">{row.user ?? <span class="faint">{NOT_AVAILABLE}</span>}</td>
      <td data-label="Framework">{row.framework ?? <span class="faint">{NOT_AVAILABLE}</span>}</td>
      <td class="nowrap" data-label="Started">
        {row.startedAt === null ? <span class="faint">{NOT_AVAILABLE}</span> : clockTime(row.startedAt, at)}
      </td>
      <td class="number" data-label="Duration">
        {row.durationMs === null ? <span class="faint">{NOT_AVAILABLE}</span> : formatAge(row.durationMs)}
      </td>
    </tr>
  )
}

const MOST_GPUS = 4

function Gpus({ names }: { readonly names: readonly string[] }) {
  const labelOf = (name: string) => gpus.value.find((cell) => namesGpu(cell.info.value, name))?.info.value.label ?? name
  return (
    <span title={names.join(', ')}>
      {names.slice(0, MOST_GPUS).map(labelOf).join(', ')}
      {names.length > MOST_GPUS ? ` +${names.length - MOST_GPUS}` : ''}
    </span>
  )
}
