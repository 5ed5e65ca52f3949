/** The ledger of a report of memory that ran out, as a bar and a table show it. */
import { ledgerBySize, ledgerLabel, ledgerTotal, type OomReport } from '../../../../src/core/memory/oom-report.ts'
import { formatBytes, formatShare } from '../../words.ts'

export interface OomPart {
  readonly name: string
  readonly label: string
  readonly size: string
  /** Of all of it, 0–1. */
  readonly ratio: number
  readonly share: string
  readonly explanation: string
}

export interface OomParts {
  readonly parts: readonly OomPart[]
  readonly total: string
  /** The same in words, for who cannot see the bar. */
  readonly words: string
}

/** null: the report does not say where the memory was. */
export function oomParts(report: OomReport): OomParts | null {
  const total = ledgerTotal(report)
  if (total <= 0) return null
  const parts = ledgerBySize(report).map(({ name, bytes, explanation }) => ({
    name,
    label: ledgerLabel(name),
    size: formatBytes(bytes),
    ratio: bytes / total,
    share: formatShare(bytes, total),
    explanation: explanation ?? '',
  }))
  return { parts, total: formatBytes(total), words: parts.map(({ label, size }) => `${label} ${size}`).join(', ') }
}
