/** Alerts from before a restart that no detector reports any more. */
import type { AgentState } from '../core/kinds.ts'
import type { Finding } from '../core/model.ts'
import type { AlertRecord } from './alert-record.ts'

/** Detectors need time to see again what they saw before; the slowest waits for half an hour. */
export const RESTART_GRACE_MS = 45 * 60_000
/** The agent's list is bounded; when it is nearly full, absence from it says nothing. */
const FINDINGS_KNOWN = 1000

export interface Confirmation {
  readonly state: AgentState
  readonly at: number
  /** The grace is over: every detector has had the time to confirm its alerts. */
  readonly isGraceOver: boolean
  /** Whether a detector runs; only it could confirm or end its findings. */
  readonly isWatched: (detector: string) => boolean
}

/** What ends them: no detector has confirmed them and the agent does not know them, so nobody else would end them. */
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
