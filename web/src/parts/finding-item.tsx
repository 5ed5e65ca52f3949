import { messageAt } from '../../../src/core/forecast-words.ts'
import { runName } from '../../../src/core/known/runs.ts'
import type { Finding } from '../../../src/core/model.ts'
import { present } from '../live/present.ts'
import { gpus, runs } from '../live/store.ts'
import { placeHash } from '../place.ts'
import { clockTime, formatAge, formatPercent, severityTone } from '../words.ts'
import { Badge } from './parts.tsx'

export function FindingItem({ finding, isShort = false }: { readonly finding: Finding; readonly isShort?: boolean }) {
  const at = present()
  return (
    <li class="finding">
      <Badge tone={severityTone(finding.severity)}>{finding.severity}</Badge>
      <div class="body">
        <span>{messageAt(finding, at)}</span>
        <span class="tiny faint">
          {finding.detector} · since {clockTime(finding.since, at)} ({formatAge(at - finding.since)}) · confidence{' '}
          {formatPercent(finding.confidence)}
          {finding.provenance === 'simulated' ? ' · SIMULATED' : ''}
          <SubjectLinks finding={finding} />
        </span>
        {!isShort && finding.advice.length > 0 && (
          <ul>
            {finding.advice.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        )}
      </div>
    </li>
  )
}

/** To whom it happens: the GPU, the process, the run. */
function SubjectLinks({ finding }: { readonly finding: Finding }) {
  const { gpu, gpuIndex, pid, run } = finding.subject
  const cell = gpus.value.find(({ id, info }) => (gpu === null ? info.value.index === gpuIndex && info.value.mig === null : id === gpu))
  return (
    <>
      {cell && (
        <>
          {' · '}
          <a href={placeHash(['gpu', cell.info.value.label])}>GPU {cell.info.value.label}</a>
        </>
      )}
      {pid !== null && (
        <>
          {' · '}
          <a href={placeHash(['processes'], { q: `pid:${pid}` })}>process {pid}</a>
        </>
      )}
      {run !== null && (
        <>
          {' · '}
          <a href={placeHash(['training', run])}>{runName({ id: run, run: runs.value.get(run) ?? null })}</a>
        </>
      )}
    </>
  )
}
