/** Alerts, and findings without an alert, as rows: open first, then resolved. */
import { formatClock, printable } from '../core/format.ts'
import type { Finding } from '../core/model.ts'
import { type Style, TONE } from './grid.ts'
import type { AlertData, ScreenData } from './screen-data.ts'
import { severityTone } from './words.ts'

export interface AlertRow {
  readonly finding: Finding
  /** `firing`, `acknowledged by ada until 15:00`, `no alert`; '' where nobody alerts. */
  readonly words: string
  readonly tone: Style
  readonly isOpen: boolean
}

export function alertRows({ alerts, findings, resolved, now }: ScreenData): readonly AlertRow[] {
  const told = (alerts ?? []).map((alert) => rowOf(alert, now))
  const covered = new Set(told.map(({ finding }) => finding.fingerprint))
  const words = alerts === null ? '' : 'no alert'
  const untold = (list: readonly Finding[]) =>
    list
      .filter(({ fingerprint }) => !covered.has(fingerprint))
      .map((finding): AlertRow => ({ finding, words, tone: TONE.muted, isOpen: false }))
  const [open, over] = [told.filter(({ isOpen }) => isOpen), told.filter(({ isOpen }) => !isOpen)]
  return [...open, ...untold(findings), ...over, ...untold(resolved)]
}

/** Where the chosen one is now; where it was, when it is no longer there. */
export function chosenAlert(
  rows: readonly AlertRow[],
  { selected, fingerprint }: { selected: number; fingerprint: string | null },
): number {
  const index = rows.findIndex(({ finding }) => finding.fingerprint === fingerprint)
  return index >= 0 ? index : Math.max(0, Math.min(selected, rows.length - 1))
}

function rowOf({ finding, state, acknowledged, silencedUntil, mutedBy }: AlertData, now: number): AlertRow {
  if (state === 'resolved') return { finding: { ...finding, state: 'resolved' }, words: 'resolved', tone: TONE.good, isOpen: false }
  const isOpen = true
  // A silence goes over everything; somebody who takes care is the second best news.
  if (mutedBy === 'silence' || silencedUntil !== null)
    return { finding, words: `silenced${until(silencedUntil, now)}`, tone: TONE.muted, isOpen }
  if (acknowledged && acknowledged.until > now)
    return {
      finding,
      words: `acknowledged by ${printable(acknowledged.by) || 'somebody'}${until(acknowledged.until, now)}`,
      tone: TONE.accent,
      isOpen,
    }
  if (mutedBy !== null) return { finding, words: `${state}, quiet: ${mutedBy}`, tone: TONE.simulated, isOpen }
  return { finding, words: state, tone: state === 'firing' ? severityTone(finding.severity) : TONE.warning, isOpen }
}

function until(at: number | null, now: number): string {
  return at === null ? '' : ` until ${formatClock(at, now).slice(0, -3)}`
}
