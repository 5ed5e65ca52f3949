/** What was found in a recording up to the moment that is shown. */
import { steer, timeline } from '../../live/replay.ts'
import { findings, playedAt } from '../../live/store.ts'
import { Badge } from '../../parts/parts.tsx'
import { clockTime, severityTone } from '../../words.ts'

const MOST = 8

export function earlierMarks() {
  const at = playedAt.value ?? 0
  const active = new Set(findings.value.map(({ message }) => message))
  return (timeline.value?.marks ?? []).filter((mark) => mark.at <= at && !active.has(mark.message)).reverse()
}

export function RecordedFindings() {
  const marks = earlierMarks()
  if (marks.length === 0) return null
  return (
    <>
      <h3 class="small">Earlier in this recording</h3>
      <ul class="list">
        {marks.slice(0, MOST).map(({ at, severity, kind, message }) => (
          <li class="finding" key={`${at} ${message}`}>
            <Badge tone={severityTone(severity)}>{severity}</Badge>
            <div class="body">
              <span>{message}</span>
              <span class="tiny faint">
                {kind} ·{' '}
                <button type="button" class="quiet" onClick={() => void steer({ at })} title="Go to this moment">
                  {clockTime(at, at)}
                </button>
              </span>
            </div>
          </li>
        ))}
      </ul>
      {marks.length > MOST && <p class="small faint">{marks.length - MOST} more are on the time line.</p>}
    </>
  )
}
