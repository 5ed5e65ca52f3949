/** What was found in a recording up to the moment that is shown, and is over by then. */
import type { FindingsAnswer } from '../../answers.ts'
import { ask } from '../../api.ts'
import { steer } from '../../live/replay.ts'
import { findings } from '../../live/store.ts'
import { Badge } from '../../parts/parts.tsx'
import { usePolled } from '../../poll.ts'
import { clockTime, severityTone } from '../../words.ts'

const MOST = 8
const REFRESH_MS = 15_000

export function RecordedFindings() {
  const news = findings.value.map(({ fingerprint }) => fingerprint).join()
  const { answer } = usePolled(
    `recorded findings ${news}`,
    (signal) => ask<FindingsAnswer>('/api/v1/findings/history', { from: 0 }, { signal }),
    REFRESH_MS,
  ).value
  const over = (answer?.findings ?? []).filter(({ state }) => state === 'resolved')
  if (over.length === 0) return null
  return (
    <>
      <h3 class="small">Earlier in this recording</h3>
      <ul class="list">
        {over.slice(0, MOST).map(({ fingerprint, since, at, severity, detector, message }) => (
          <li class="finding" key={`${fingerprint} ${since}`}>
            <Badge tone={severityTone(severity)}>{severity}</Badge>
            <div class="body">
              <span>{message}</span>
              <span class="tiny faint">
                {detector} ·{' '}
                <button type="button" class="quiet" onClick={() => void steer({ at: since })} title="Go to its beginning">
                  {clockTime(since, at)}
                </button>{' '}
                to {clockTime(at, at)}
              </span>
            </div>
          </li>
        ))}
      </ul>
      {over.length > MOST && <p class="small faint">{over.length - MOST} more are on the time line.</p>}
    </>
  )
}
