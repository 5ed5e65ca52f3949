import type { Finding } from '../core/model.ts'
import { both, type FindingBook, NO_FINDINGS } from './finding.ts'
import type { RunTable } from './run-table.ts'

export const SILENT_MS = 600_000
export const SILENT = 'The run has reported nothing for 10 min.'

/** Drops the ranks of runs that stopped silently, and ends their findings. */
export function dropSilentRanks<W extends { readonly lastSeenAt: number | null }>(
  ranks: RunTable<W>,
  book: FindingBook,
  at: number,
): readonly Finding[] {
  let findings = NO_FINDINGS
  for (const key of ranks.dropSilent(at, SILENT_MS)) findings = both(findings, book.resolveRank(key, at, SILENT))
  for (const [key, { lastSeenAt }] of ranks) {
    if (lastSeenAt === null || at - lastSeenAt <= SILENT_MS) continue
    ranks.delete(key)
    findings = both(findings, book.resolveRank(key, at, SILENT))
  }
  return findings
}
