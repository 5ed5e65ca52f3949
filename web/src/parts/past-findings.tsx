import { untracked } from '@preact/signals'
import type { Finding } from '../../../src/core/model.ts'
import { present } from '../live/present.ts'
import { clockTime } from '../words.ts'

const MOST = 20

/** Resolved findings: from when to when, and their last message. */
export function PastFindings({ list }: { readonly list: readonly Finding[] }) {
  if (list.length === 0) return null
  const at = untracked(present)
  return (
    <details class="small">
      <summary>Resolved ({list.length})</summary>
      <ul class="past-findings">
        {list.slice(0, MOST).map((finding) => (
          <li key={`${finding.fingerprint}${finding.since}`}>
            <time class="faint nowrap">
              {clockTime(finding.since, at)} – {clockTime(finding.at, at)}
            </time>
            <span>
              <b>{finding.detector}</b> {finding.message}
            </span>
          </li>
        ))}
      </ul>
      {list.length > MOST && <p class="faint">The latest {MOST} are shown.</p>}
    </details>
  )
}
