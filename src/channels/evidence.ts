/** Evidence and moments as a message shows them. */
import { type EvidenceRow, evidenceRows } from '../core/evidence.ts'
import { formatAge, formatMoment } from '../core/format.ts'
import type { Finding } from '../core/model.ts'
import { oneLine } from './plain-text.ts'

const MOST_FACTS = 24

export type Fact = EvidenceRow

export function evidenceFacts(evidence: Finding['evidence'], now: number): Fact[] {
  const rows = evidenceRows(evidence, (at) => moment(at, now)).slice(0, MOST_FACTS)
  return rows.map(({ label, value }) => ({ label: oneLine(label, 60), value: oneLine(value, 200) }))
}

/** `2026-03-01 02:10:05 +01:00 (25 min ago)`: the host's own clock, with its offset from UTC. */
export function moment(at: number, now: number): string {
  const told = formatMoment(at)
  if (told === 'unknown') return told
  const away = now - at
  const distance = Math.abs(away) < 1000 ? 'now' : away > 0 ? `${formatAge(away)} ago` : `in ${formatAge(-away)}`
  return `${told} (${distance})`
}
