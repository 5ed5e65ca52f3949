import { untracked } from '@preact/signals'
/** The final figures of runs that are compared. */
import { numberOf } from '../../../../src/core/json-text.ts'
import type { RunTime } from '../../../../src/core/run-time.ts'
import type { PhaseShare } from '../../../../src/core/step-phases.ts'
import { present } from '../../live/present.ts'
import { setQuery } from '../../location.ts'
import { ScrollBox } from '../../parts/parts.tsx'
import { formatAge, formatBytes, formatFigure, formatPercent, formatSeconds, NOT_AVAILABLE } from '../../words.ts'
import { type Compared, nameOf } from './compared-run.ts'
import { columnOf } from './curve.ts'
import { metricFormat, metricName } from './metric-names.ts'
import { keptRow } from './run-rows.ts'
import { StateBadge } from './run-state.tsx'

export function FinalFigures({
  list,
  metric,
  ids,
}: {
  readonly list: readonly Compared[]
  readonly metric: string
  readonly ids: readonly string[]
}) {
  return (
    <div class="panel flush">
      <ScrollBox label="Final figures of the runs">
        <table>
          <thead>
            <tr>
              <th>Run</th>
              <th>State</th>
              <th class="number">Step</th>
              {metric !== 'loss' && <th class="number">{metricName(metric)}</th>}
              <th class="number">Loss</th>
              <th class="number">Best loss</th>
              <th class="number">Mean samples/s</th>
              <th class="number">Mean tokens/s</th>
              <th class="number">Mean step</th>
              <th>Phases</th>
              <th class="number">Goodput</th>
              <th class="number">Peak allocated</th>
              <th class="number">Duration</th>
              <th>
                <span class="visually-hidden">Remove</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {list.map((one, index) => (
              <FinalRow key={one.id} one={one} index={index} metric={metric} ids={ids} />
            ))}
          </tbody>
        </table>
      </ScrollBox>
    </div>
  )
}

const MOST_PHASES = 3

/** `data 120 ms, backward 80 ms`: what its steps mostly go to. */
function phasesOf(run: Compared['run'], stepSeconds: number | null): string {
  const shares = (run?.training?.phaseShares ?? []) as readonly PhaseShare[]
  if (shares.length === 0 || stepSeconds === null) return NOT_AVAILABLE
  const largest = [...shares].sort((a, b) => b.ratio - a.ratio).slice(0, MOST_PHASES)
  return largest.map(({ phase, ratio }) => `${phase} ${formatSeconds(ratio * stepSeconds)}`).join(', ')
}

interface FinalRowProps {
  readonly one: Compared
  readonly index: number
  readonly metric: string
  readonly ids: readonly string[]
}

function FinalRow({ one, index, metric, ids }: FinalRowProps) {
  const { id, run, curve } = one
  const told = (name: string) => numberOf(run?.training?.[name])
  const last = (field: string) => columnOf(curve, field)?.findLast((value) => value !== null) ?? null
  const loss = run ? told('loss') : last('loss')
  const best = columnOf(curve, 'loss')?.reduce<number | null>((least, value) => {
    return value === null || !Number.isFinite(value) || (least !== null && least <= value) ? least : value
  }, null)
  const remove = () => setQuery({ runs: ids.filter((other) => other !== id).join() || null })
  return (
    <tr>
      <td class="run-name">
        <i class={`swatch series-${index + 1}`} />{' '}
        <a class="cut" href={`#/training/${encodeURIComponent(id)}`} title={`${nameOf(one)} (${id})`}>
          {nameOf(one)}
        </a>
      </td>
      <td>{run ? <StateBadge state={keptRow(run, undefined, untracked(present)).state} /> : <span class="faint">not stored</span>}</td>
      <td class="number">{(run ? told('lastStep') : curve.steps.at(-1)) ?? NOT_AVAILABLE}</td>
      {metric !== 'loss' && <td class="number">{metricFormat(metric)(last(metric))}</td>}
      <td class={`number ${loss !== null && !Number.isFinite(loss) ? 'tone-critical' : ''}`}>{formatFigure(loss)}</td>
      <td class="number">
        {formatFigure(told('bestLoss') ?? best ?? null)}
        {told('bestLossStep') !== null && <small class="faint"> at {told('bestLossStep')}</small>}
      </td>
      <td class="number">{formatFigure(told('meanThroughputPerSecond'))}</td>
      <td class="number">{formatFigure(told('meanTokensPerSecond'))}</td>
      <td class="number">{formatSeconds(told('meanStepSeconds'))}</td>
      <td class="nowrap">{phasesOf(run, told('meanStepSeconds'))}</td>
      <td class="number">{formatPercent((run?.training?.time as RunTime | undefined)?.goodputRatio ?? null)}</td>
      <td class="number">{formatBytes(told('memoryPeakAllocatedBytes') ?? last('memoryPeakAllocatedBytes'))}</td>
      <td class="number">{run ? formatAge((run.endedAt ?? present()) - run.startedAt) : NOT_AVAILABLE}</td>
      <td>
        <button type="button" class="quiet" onClick={remove} aria-label={`Remove ${nameOf(one)}`}>
          Remove
        </button>
      </td>
    </tr>
  )
}
