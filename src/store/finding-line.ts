/** Reads a line of `findings_*.jsonl`, as findingRecord wrote it. */
import type { Finding, RiskLevel, Severity } from '../core/model.ts'
import { parseObject, parseTimestamp } from '../core/recording/json.ts'

const SEVERITIES: readonly Severity[] = ['info', 'warning', 'critical']
const RISKS: readonly RiskLevel[] = ['low', 'medium', 'high', 'critical']
const PROVENANCES: readonly Finding['provenance'][] = ['live', 'simulated', 'replay']

/** null: this line is not a finding. */
export function parseFindingLine(line: string): Finding | null {
  const record = parseObject(line)
  if (typeof record === 'string') return null
  const at = parseTimestamp(record.at)
  const { fingerprint, detector, state, message } = record
  if (at === null || typeof fingerprint !== 'string' || typeof detector !== 'string' || typeof message !== 'string') return null
  if (state !== 'active' && state !== 'resolved') return null
  return {
    fingerprint,
    detector,
    provenance: oneOf(PROVENANCES, record.provenance) ?? 'live',
    subject: {
      host: textOf(record.host),
      gpu: textOf(record.gpu),
      gpuIndex: numberOf(record.gpu_index),
      pid: numberOf(record.pid),
      user: textOf(record.user),
      run: textOf(record.run),
      rank: numberOf(record.rank),
    },
    severity: oneOf(SEVERITIES, record.severity) ?? 'info',
    state,
    at,
    since: parseTimestamp(record.since) ?? at,
    message,
    evidence: evidenceOf(record.evidence),
    confidence: numberOf(record.confidence) ?? 0,
    advice: Array.isArray(record.advice) ? record.advice.filter((line) => typeof line === 'string') : [],
    predictedAt: parseTimestamp(record.predicted_at),
    predictedEarliestAt: parseTimestamp(record.predicted_earliest_at),
    predictedLatestAt: parseTimestamp(record.predicted_latest_at),
    riskLevel: oneOf(RISKS, record.risk_level),
  }
}

/** JSON has neither NaN nor Infinity; findingRecord wrote them as text. */
const NO_JSON_NUMBER: ReadonlySet<unknown> = new Set(['NaN', 'Infinity', '-Infinity'])

function evidenceOf(value: unknown): Finding['evidence'] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {}
  const evidence: Record<string, number | string | boolean | null> = {}
  for (const [name, item] of Object.entries(value)) {
    if (NO_JSON_NUMBER.has(item)) evidence[name] = Number(item)
    else if (item === null || typeof item === 'number' || typeof item === 'string' || typeof item === 'boolean') evidence[name] = item
  }
  return evidence
}

function oneOf<T>(known: readonly T[], value: unknown): T | null {
  return known.find((one) => one === value) ?? null
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}
