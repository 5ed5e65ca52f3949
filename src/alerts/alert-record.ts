/** What is kept of each trouble: the state of the engine for one fingerprint. Plain and JSON-safe. */
import type { Acknowledgement } from '../core/alert-contract.ts'
import type { GpuView } from '../core/kinds.ts'
import type { Finding, Reading, Severity } from '../core/model.ts'

export type AlertPhase = 'pending' | 'firing' | 'resolved'

/** Fields ending in `Ms` are in the engine's observed time, those ending in `At` are epoch milliseconds. */
export interface AlertRecord {
  readonly fingerprint: string
  phase: AlertPhase
  /** The latest finding; once firing, the latest active one. */
  finding: Finding
  /** The finding that ended it. */
  cleared: Finding | null
  readonly simulated: boolean
  pendingMs: number
  firedAt: Reading
  resolvedAt: Reading
  resolvedMs: Reading
  /** Since when it is clear, while it is still kept firing. */
  clearMs: Reading
  /** When it came back recently: many mean that it flaps. */
  turnsMs: number[]
  acknowledged: Acknowledgement | null
  /** From before the restart, and not confirmed since. */
  unconfirmed: boolean
}

export const SEVERITY_RANK: Readonly<Record<Severity, number>> = { info: 0, warning: 1, critical: 2 }

export function worst(severities: Iterable<Severity>): Severity {
  let found: Severity = 'info'
  for (const severity of severities) if (SEVERITY_RANK[severity] > SEVERITY_RANK[found]) found = severity
  return found
}

export function isSimulated({ subject, provenance }: Finding, gpus: readonly GpuView[]): boolean {
  const gpu = subject.gpu === null ? undefined : gpus.find((view) => view.info.id === subject.gpu)
  if (gpu) return gpu.info.provenance !== 'live'
  return provenance !== 'live'
}

/** What detectors find out after the finding: the line that leaks, where and why a run died, what else was seen then. */
const EXPLANATIONS = ['line', 'cause', 'place', 'also_seen']

/** null: nothing is known about the cause yet. */
export function explanationOf({ evidence }: Finding): string | null {
  return EXPLANATIONS.flatMap((name) => evidence[name] ?? []).join('; ') || null
}

/** NaN and ±Infinity are valid evidence, and JSON has neither. */
export function jsonSafe(finding: Finding): Finding {
  const entries = Object.entries(finding.evidence)
  if (entries.every(([, value]) => typeof value !== 'number' || Number.isFinite(value))) return finding
  const evidence = Object.fromEntries(
    entries.map(([name, value]) => [name, typeof value === 'number' && !Number.isFinite(value) ? String(value) : value]),
  )
  return { ...finding, evidence }
}
