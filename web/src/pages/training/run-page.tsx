import { useState } from 'preact/hooks'
import { isGpuOfRun } from '../../../../src/core/known/about-gpu.ts'
import { isCauseKnown, readOomReport } from '../../../../src/core/memory/oom-report.ts'
import type { Finding } from '../../../../src/core/model.ts'
import type { RunAnswer } from '../../answers.ts'
import { present } from '../../live/present.ts'
import { gpus, latestSteps, playback } from '../../live/store.ts'
import { place, setQuery } from '../../location.ts'
import { FindingItem } from '../../parts/finding-item.tsx'
import { later } from '../../parts/later.tsx'
import { Choices, Empty, Fault, Panel } from '../../parts/parts.tsx'
import { PastFindings } from '../../parts/past-findings.tsx'
import { factsOf, placeOfRank } from '../../run-gpu.ts'
import { LogSwitch, SmoothingSlider } from './controls.tsx'
import { columnOf } from './curve.ts'
import { GpuBeside } from './gpu-beside.tsx'
import { LastWords, OutOfMemory } from './out-of-memory.tsx'
import { RunCharts } from './run-charts.tsx'
import { deathOf, Ending, Report } from './run-ending.tsx'
import { RunFacts } from './run-facts.tsx'
import type { RunAxis } from './run-marks.ts'
import { keptRow, type RunRow, runRows } from './run-rows.ts'
import { lastSpan, wholeSpan } from './run-span.ts'
import { ProvenanceBadge, StateBadge } from './run-state.tsx'
import { parseSmoothing } from './smoothing.ts'
import { Standing } from './standing.tsx'
import { useIsKept, useRunCurve, useRunFacts, useRunFindings } from './use-run.ts'

const RanksPanel = later(async () => (await import('./ranks.tsx')).RanksPanel)
const RunFigures = later(async () => (await import('./run-figures.tsx')).RunFigures)
const USUAL_SMOOTHING = 0.6

type RunSpan = 'end' | 'all'

const SPANS = [
  { value: 'end', label: 'Last 5 min' },
  { value: 'all', label: 'Whole run' },
] as const

const AXES = [
  { value: 'time', label: 'Over time' },
  { value: 'step', label: 'Over steps' },
] as const

export function RunPage({ id }: { readonly id: string }) {
  const isKept = useIsKept(id)
  const { answer: run, fault } = useRunFacts(id, isKept).value
  const { query } = place.value
  const step = latestSteps.value.get(id)
  const wantedRank = query.rank === undefined || !/^\d+$/.test(query.rank) ? null : Number(query.rank)
  const course = useRunCurve(id, wantedRank, isKept, run === null || run.endedAt === null)
  const found = useRunFindings(id)
  const [moving, setMoving] = useState<number | null>(null)
  const axis: RunAxis = query.x === 'step' ? 'step' : 'time'
  const smoothing = moving ?? parseSmoothing(query.smooth, USUAL_SMOOTHING)
  const at = present()
  const row = run
    ? keptRow(run, step, at, playback.value?.state === 'ended')
    : step
      ? (runRows([], new Map([[id, step]]), at)[0] ?? null)
      : null
  if (row === null || (isKept && run === null)) return <NotHere id={id} isUnknown={isKept === false} fault={fault} />
  const outOfMemory = readOomReport(run?.report)
  const death = run && deathOf(run, found)
  const { curve } = course
  const end = run?.endedAt ?? (row.isSeenOnly ? (curve.at.at(-1) ?? at) : at)
  const isOver = row.state !== 'running' && row.state !== 'silent'
  const last = isOver ? lastSpan(axis, curve, run?.startedAt ?? null, end) : null
  const shown = query.span === 'all' ? null : last
  const domain = zoomOf(query, axis) ?? shown ?? wholeSpan(axis, curve, run?.startedAt ?? null, end)
  const cells = gpus.value
  const said = cells.filter((cell) => run?.gpus.some((name) => isGpuOfRun(cell.info.value, name)))
  const reserved = columnOf(curve, 'memoryReservedBytes')?.findLast((value) => value !== null) ?? null
  const where = placeOfRank(run, course.rank, reserved, cells.map(factsOf))
  const beside = cells.find((cell) => cell.info.value.label === query.gpu) ?? cells.find((cell) => cell.id === where?.gpu) ?? null
  const zoom = (from: number, to: number) =>
    setQuery(
      axis === 'time'
        ? { from: String(Math.round(from)), to: String(Math.round(to)) }
        : { s0: String(Math.floor(from)), s1: String(Math.ceil(to)) },
    )
  const reset = () => setQuery({ from: null, to: null, s0: null, s1: null })
  return (
    <>
      <Head row={row} run={run} />
      <Fault text={fault} />
      <RunFacts row={row} run={run} isCauseShown={row.state === 'oom' && isCauseKnown(outOfMemory)} />
      {run && <RunFigures run={run} />}
      {run && <Ending run={run} step={row.step} findings={found} />}
      {run?.report && outOfMemory && <OutOfMemory report={outOfMemory} raw={run.report} />}
      <div class="toolbar">
        {last && (
          <Choices<RunSpan>
            label="Which part"
            options={SPANS}
            value={shown === null ? 'all' : 'end'}
            onChoose={(value) => setQuery({ span: value === 'end' ? null : value, from: null, to: null, s0: null, s1: null })}
          />
        )}
        <Choices<RunAxis> label="Axis" options={AXES} value={axis} onChoose={(value) => setQuery({ x: value === 'time' ? null : value })} />
        <SmoothingSlider value={smoothing} onMove={setMoving} />
        <LogSwitch isOn={query.log === '1'} />
        {course.ranks.length > 1 && (
          <label>
            Rank
            <select value={String(course.rank)} onChange={(event) => setQuery({ rank: event.currentTarget.value })}>
              {course.ranks.map((rank) => (
                <option key={rank} value={String(rank)}>
                  {rank}
                </option>
              ))}
            </select>
          </label>
        )}
        {zoomOf(query, axis) !== null && (
          <button type="button" onClick={reset}>
            Show all
          </button>
        )}
        <span class="small faint grow">
          {course.isSeenOnly
            ? 'The agent stores no curves of replayed runs: this is what arrived since the page was opened.'
            : curve.stride > 1
              ? `One of ${curve.stride} steps is shown, and every NaN or infinite value. Drag to zoom, double-click to go back.`
              : 'Drag to zoom, double-click to go back.'}
        </span>
      </div>
      <Fault text={course.fault} />
      <RunCharts
        curve={curve}
        axis={axis}
        smoothing={smoothing}
        isLog={query.log === '1'}
        findings={found}
        run={run}
        from={domain.from}
        to={domain.to}
        isLoading={course.isLoading}
        hasAll={query.custom === 'all'}
        onZoom={zoom}
        onReset={reset}
      />
      {beside && (
        <GpuBeside
          findings={found}
          run={run}
          curve={curve}
          cell={beside}
          choices={said.length > 1 ? said : []}
          isGuess={(where?.isGuess ?? false) && query.gpu === undefined}
          axis={axis}
          from={domain.from}
          to={domain.to}
          isMoving={row.state === 'running' && zoomOf(query, 'time') === null}
          onZoom={zoom}
          onReset={reset}
        />
      )}
      {!course.isSeenOnly && course.ranks.length > 1 && (
        <RanksPanel id={id} run={run} findings={found} isRunning={run === null || run.endedAt === null} />
      )}
      {run && <Standing run={run} />}
      <Found list={death === null ? found : found.filter((finding) => finding !== death)} isEnding={death !== null} />
      {run?.report && !outOfMemory && <LastWords raw={run.report} />}
    </>
  )
}

function zoomOf(query: Readonly<Record<string, string>>, axis: RunAxis): { readonly from: number; readonly to: number } | null {
  const [from, to] = axis === 'time' ? [Number(query.from), Number(query.to)] : [Number(query.s0), Number(query.s1)]
  return to > from ? { from, to } : null
}

function NotHere({ id, isUnknown, fault }: { readonly id: string; readonly isUnknown: boolean; readonly fault: string | null }) {
  return (
    <>
      <p class="small">
        <a href="#/training">All runs</a>
      </p>
      {isUnknown ? (
        <Panel>
          <Empty title={`There is no run ${id} here`}>It was removed, or belongs to another agent.</Empty>
        </Panel>
      ) : fault !== null ? (
        <Fault text={fault} />
      ) : (
        <p class="faint">Loading…</p>
      )}
    </>
  )
}

function Head({ row, run }: { readonly row: RunRow; readonly run: RunAnswer | null }) {
  return (
    <div class="page-head">
      <div class="grow run-head">
        <p class="small">
          <a href="#/training">Training</a> <span class="faint">/</span>
        </p>
        <h1 class="run-title">
          <span class="cut" title={row.name}>
            {row.name}
          </span>{' '}
          <StateBadge state={row.state} />
          <ProvenanceBadge of={row.provenance} />
        </h1>
        <p class="tiny faint mono cut" title={row.id}>
          {row.id}
        </p>
      </div>
      <a class="button" href={`#/training?runs=${encodeURIComponent(row.id)}`}>
        Compare…
      </a>
      {(run?.layers ?? 0) > 0 && (
        <a class="button" href={`#/layers/${encodeURIComponent(row.id)}`}>
          Layers
        </a>
      )}
      {run && <Report id={row.id} run={run} />}
    </div>
  )
}

/** `isEnding`: how the run ended stands above. */
function Found({ list, isEnding }: { readonly list: readonly Finding[]; readonly isEnding: boolean }) {
  const active = list.filter(({ state }) => state === 'active')
  const past = list.filter(({ state }) => state === 'resolved')
  return (
    <Panel title="Findings">
      {active.length === 0 ? (
        <Empty title={past.length > 0 ? 'No active findings' : isEnding ? 'No other findings' : 'No findings about this run'} />
      ) : (
        <ul class="list">
          {active.map((finding) => (
            <FindingItem key={`${finding.fingerprint}${finding.since}`} finding={finding} />
          ))}
        </ul>
      )}
      <PastFindings list={past} />
    </Panel>
  )
}
