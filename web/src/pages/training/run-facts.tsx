/** What a run is and how far it came, in figures. */
import { numberOf } from '../../../../src/core/json-text.ts'
import { isGpuOfRun } from '../../../../src/core/known/about-gpu.ts'
import { leakLineText } from '../../../../src/core/memory/line-recording.ts'
import type { Reading } from '../../../../src/core/model.ts'
import type { RunAnswer } from '../../answers.ts'
import { present } from '../../live/present.ts'
import { gpus } from '../../live/store.ts'
import { CopyButton, Fact, Panel } from '../../parts/parts.tsx'
import { clockTime, formatAge, formatBytes, formatFigure, formatPercent, formatSeconds, NOT_AVAILABLE } from '../../words.ts'
import type { RunRow } from './run-rows.ts'

/** `isCauseShown`: why memory ran out is on the page, and PyTorch's message with it. */
export function RunFacts({
  row,
  run,
  isCauseShown,
}: {
  readonly row: RunRow
  readonly run: RunAnswer | null
  readonly isCauseShown: boolean
}) {
  const told = (name: string): Reading => numberOf(run?.training?.[name])
  const at = present()
  const isOdd = row.loss !== null && !Number.isFinite(row.loss)
  const odd = told('nonFiniteSteps')
  const settings = Object.entries(run?.hyperparameters ?? {})
  return (
    <Panel>
      <div class="facts">
        <Fact label="Step">
          {row.step ?? NOT_AVAILABLE}
          {row.totalSteps !== null && <small class="faint"> of {row.totalSteps}</small>}
          {row.progress !== null && <progress value={row.progress} max={1} aria-label={`${formatPercent(row.progress)} done`} />}
        </Fact>
        <Fact label="Time left" title="Steps left × mean step time">
          {row.etaMs === null ? NOT_AVAILABLE : formatAge(row.etaMs)}
        </Fact>
        <Fact label="Loss" tone={isOdd ? 'critical' : 'plain'}>
          {formatFigure(row.loss)}
        </Fact>
        {told('bestLoss') !== null && (
          <Fact label="Best loss">
            {formatFigure(told('bestLoss'))} <small class="faint">at step {told('bestLossStep')}</small>
          </Fact>
        )}
        <Fact label="Samples/s">{formatFigure(row.throughputPerSecond)}</Fact>
        {run && <Fact label="Mean step time">{formatSeconds(told('meanStepSeconds'))}</Fact>}
        {told('memoryPeakAllocatedBytes') !== null && <Fact label="Peak allocated">{formatBytes(told('memoryPeakAllocatedBytes'))}</Fact>}
        {odd !== null && odd > 0 && (
          <Fact label="Not finite" tone="critical">
            {odd} steps
          </Fact>
        )}
        {row.lastStepAt !== null && (
          <Fact label={row.state === 'silent' ? 'No step for' : 'Last step'} tone={row.state === 'silent' ? 'warning' : 'plain'}>
            {row.state === 'silent' ? formatAge(at - row.lastStepAt) : clockTime(row.lastStepAt, at)}
          </Fact>
        )}
        {row.startedAt !== null && <Fact label="Started">{clockTime(row.startedAt, at)}</Fact>}
        {run?.endedAt != null && <Fact label={run.endIsPresumed ? 'Ended (assumed)' : 'Ended'}>{clockTime(run.endedAt, at)}</Fact>}
        {row.durationMs !== null && <Fact label="Duration">{formatAge(row.durationMs)}</Fact>}
        {run && (
          <>
            <Fact label="User">{run.user ?? NOT_AVAILABLE}</Fact>
            <Fact label="Host">{run.host ?? NOT_AVAILABLE}</Fact>
            <Fact label="Framework">{run.framework ?? NOT_AVAILABLE}</Fact>
            <Fact label="GPUs">{run.gpus.length === 0 ? NOT_AVAILABLE : run.gpus.map((name) => <GpuLink key={name} name={name} />)}</Fact>
            {run.worldSize !== null && <Fact label="Processes">{run.worldSize}</Fact>}
            {run.pid !== null && <Fact label="PID">{run.pid}</Fact>}
            {run.gitCommit != null && (
              <Fact label="Commit" title={run.gitCommit}>
                <code>{run.gitCommit.slice(0, 12)}</code>
              </Fact>
            )}
          </>
        )}
      </div>
      {run?.leakLines?.map((line) => (
        <p key={line.rank} class="small breakable tone-warning">
          <strong>Leak{run.leakLines && run.leakLines.length > 1 && ` of rank ${line.rank}`}:</strong> {leakLineText(line)}{' '}
          <span class="faint">recorded {clockTime(line.at, at)}</span>
        </p>
      ))}
      {run?.message != null && !isCauseShown && (
        <p class={`small breakable ${row.state === 'success' ? '' : 'tone-critical'}`}>
          <strong>Last message:</strong> {run.message}
        </p>
      )}
      {settings.length > 0 && (
        <details class="small">
          <summary>Hyperparameters</summary>
          <div class="facts">
            {settings.map(([name, value]) => (
              <Fact key={name} label={name}>
                {String(value)}
              </Fact>
            ))}
          </div>
        </details>
      )}
      {run?.command != null && (
        <div class="command-line">
          <code class="cut" title={run.command}>
            {run.command}
          </code>
          <CopyButton text={run.command} />
        </div>
      )}
    </Panel>
  )
}

function GpuLink({ name }: { readonly name: string }) {
  const cell = gpus.value.find((one) => isGpuOfRun(one.info.value, name))
  const label = cell?.info.value.label
  return label === undefined ? (
    <span class="gpu-link" title="Not a GPU of this host">
      {name}
    </span>
  ) : (
    <a class="gpu-link" href={`#/gpu/${encodeURIComponent(label)}`}>
      {label}
    </a>
  )
}
