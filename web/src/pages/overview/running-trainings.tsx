import { untracked } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { RunsAnswer } from '../../answers.ts'
import { ask } from '../../api.ts'
import { present } from '../../live/present.ts'
import { allRuns, findings, gpuCell, isReplay, link } from '../../live/store.ts'
import { Badge, Empty, Meter, Panel } from '../../parts/parts.tsx'
import { placeHash } from '../../place.ts'
import { usePolled } from '../../poll.ts'
import { formatAge, formatFigure, formatPercent, NOT_AVAILABLE, severityTone } from '../../words.ts'
import { StateBadge } from '../training/run-state.tsx'
import { type TrainingRow, trainingRows } from './training-rows.ts'

const REFRESH_MS = 15_000
const QUIET_MS = 60_000
const MOST_SHOWN = 12

export function RunningTrainings() {
  // The stream carries steps as they come; means over a whole run come from the agent.
  const { answer } = usePolled('runs', (signal) => ask<RunsAnswer>('/api/v1/runs', {}, { signal }), REFRESH_MS).value
  const listed = new Map((answer?.runs ?? []).map((run) => [run.id, run]))
  const rows = trainingRows(allRuns(), listed, findings.value, untracked(present), isReplay.value)
  return (
    <Panel title={isReplay.value ? 'Trainings' : 'Running trainings'} aside={<a href="#/training">All runs</a>}>
      {rows.length > 0 && link.value.state === 'lost' && <p class="small tone-critical">As of the last contact with the agent:</p>}
      {rows.length === 0 ? (
        <Empty title={isReplay.value ? 'No training up to this moment' : 'No training is running'}>
          Start one with <code>gpuwarden run -- python train.py</code>, or report steps from your code with the SDK.
        </Empty>
      ) : (
        <ul class="list">
          {rows.slice(0, MOST_SHOWN).map((row) => (
            <TrainingItem key={row.id} row={row} />
          ))}
        </ul>
      )}
      {rows.length > MOST_SHOWN && <a href="#/training">{rows.length - MOST_SHOWN} more</a>}
    </Panel>
  )
}

function TrainingItem({ row }: { readonly row: TrainingRow }) {
  const { name, user, gpus, step, totalSteps, progress, etaSeconds, loss, throughputPerSecond, findings: own } = row
  const [worst] = own
  const steps = `${step ?? NOT_AVAILABLE}${totalSteps === null ? '' : ` / ${totalSteps}`}`
  const isBroken = loss !== null && !Number.isFinite(loss)
  return (
    <li class="training">
      <div class="card-line">
        <a class="cut" href={placeHash(['training', row.id])} title={name}>
          {name}
        </a>
        <span class="grow" />
        {row.outcome !== null && <StateBadge state={row.outcome} />}
        {worst && (
          <Badge tone={severityTone(worst.severity)} title={worst.message}>
            {worst.detector.replaceAll('_', ' ')}
          </Badge>
        )}
      </div>
      {progress !== null && (
        <Meter label={`Progress of ${name}`} value={`${steps}, ${formatPercent(progress)}`} parts={[{ ratio: progress, fill: 'fill-1' }]} />
      )}
      <dl class="training-figures">
        <Figure label="step">{steps}</Figure>
        <Figure label="left">{etaSeconds === null ? NOT_AVAILABLE : formatAge(etaSeconds * 1000)}</Figure>
        <Figure label="loss">
          <span class={isBroken ? 'tone-critical' : ''}>{formatFigure(loss)}</span>
        </Figure>
        <Figure label="per second">{formatFigure(throughputPerSecond)}</Figure>
      </dl>
      <p class="tiny faint cut">
        {[user, gpus.length === 0 ? null : `GPU ${gpus.map((id) => gpuCell(id)?.info.value.label ?? id).join(', ')}`]
          .filter(Boolean)
          .join(' · ')}
        <Silence lastStepAt={row.lastStepAt} />
      </p>
    </li>
  )
}

function Figure({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function Silence({ lastStepAt }: { readonly lastStepAt: number | null }) {
  const age = lastStepAt === null ? null : present() - lastStepAt
  return age === null || age < QUIET_MS ? null : <span class="tone-warning"> · no step for {formatAge(age)}</span>
}
