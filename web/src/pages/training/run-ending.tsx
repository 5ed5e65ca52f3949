/** How a run ended, and its report. */
import { useState } from 'preact/hooks'
import type { Finding } from '../../../../src/core/model.ts'
import type { RunAnswer } from '../../answers.ts'
import { askFile, inWords } from '../../api.ts'
import { save } from '../../chart/export.ts'
import { present } from '../../live/present.ts'
import { FindingItem } from '../../parts/finding-item.tsx'
import { Fault, Panel } from '../../parts/parts.tsx'
import { clockTime, formatAge } from '../../words.ts'
import { runPath } from './use-run.ts'

/** The newest death, if that is how it ended: a run may have been resumed since an earlier one. */
export function deathOf(run: RunAnswer, findings: readonly Finding[]): Finding | null {
  if (run.endedAt === null || run.outcome === 'success') return null
  return findings.find(({ detector }) => detector === 'run_died') ?? null
}

export function Ending({
  run,
  step,
  findings,
}: {
  readonly run: RunAnswer
  readonly step: number | null
  readonly findings: readonly Finding[]
}) {
  const { endedAt, startedAt, outcome } = run
  if (endedAt === null) return null
  const death = deathOf(run, findings)
  return (
    <Panel title="How it ended">
      {death ? (
        <ul class="list">
          <FindingItem finding={death} />
        </ul>
      ) : (
        <p>
          {outcome === 'success' ? 'Finished' : `Ended (${outcome ?? 'not known how'})`} at {clockTime(endedAt, present())}, after{' '}
          {formatAge(endedAt - startedAt)}
          {step === null ? '' : `, at step ${step}`}.
        </p>
      )}
    </Panel>
  )
}

export function Report({ id, run }: { readonly id: string; readonly run: RunAnswer }) {
  const [fault, setFault] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  if (run.logDir === null) return <span class="small faint">No report: the agent keeps no logs (log.enabled is off).</span>
  const path = `${runPath(id)}/report.html`
  const download = async () => {
    setBusy(true)
    setFault(null)
    try {
      save(await askFile(path), `gpuwarden-${id}.html`)
    } catch (error) {
      setFault(inWords(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <div class="report">
      <a class="button" href={`${path}?view=1`} target="_blank" rel="noreferrer">
        Open report
      </a>
      <button type="button" disabled={isBusy} onClick={() => void download()}>
        {isBusy ? 'Writing the report…' : 'Download report'}
      </button>
      <Fault text={fault} />
    </div>
  )
}
