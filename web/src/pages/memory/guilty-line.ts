/** The line of the program that is to blame, where the evidence of a finding names one. */
import type { EvidenceRow } from '../../../../src/core/evidence.ts'

const PLACES: ReadonlySet<string> = new Set(['line', 'guilty line', 'location', 'stack', 'frame', 'culprit'])

export function isPlace({ label }: EvidenceRow): boolean {
  return PLACES.has(label)
}

export function guiltyLine(rows: readonly EvidenceRow[]): string | null {
  return rows.find(isPlace)?.value ?? null
}
