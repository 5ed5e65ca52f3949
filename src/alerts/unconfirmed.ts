/** Alerts from before a restart of which nobody speaks any more. */
import type { AgentState } from '../core/kinds.ts'
import type { Finding } from '../core/model.ts'
import type { AlertRecord } from './alert-record.ts'

/** Detectors need time to see again what they saw before; the slowest waits for half an hour. */
export const RESTART_GRACE_MS = 45 * 60_000
/** The agent's own list is bounded; when it is nearly full, absence from it says nothing. */
const FINDINGS_KNOWN = 1000

export interface Confirmation {
  readonly state: AgentState
  readonly at: number
  /** The grace is over: whoever could confirm an alert has had the time to. */
  readonly isGraceOver: boolean
  /** Whether a detector runs; nobody else would ever confirm or end what it said. */
  readonly isWatched: (detector: string) => boolean
}

/** What ends them: no detector has confirmed them, and the agent does not know of them, so nobody would ever say so otherwise. */
export function endingsOf(records: Iterable<AlertRecord>, { state, at, isGraceOver, isWatched }: Confirmation): readonly Finding[] {
  const isLost = ({ unconfirmed, phase, finding }: AlertRecord) =>
    unconfirmed && phase !== 'resolved' && (isGraceOver || !isWatched(finding.detector))
  const lost = [...records].filter(isLost)
  if (lost.length === 0) return []
  const known = state.findings()
  if (known.length >= FINDINGS_KNOWN) return []
  const active = new Set(known.map((finding) => finding.fingerprint))
  return lost
    .filter(({ fingerprint }) => !active.has(fingerprint))
    .map(({ finding }) => ({
      ...finding,
      state: 'resolved',
      at,
      message: `${isWatched(finding.detector) ? 'Not reported again' : 'No longer watched'} since gpuwarden was restarted: ${finding.message}`,
    }))
}
