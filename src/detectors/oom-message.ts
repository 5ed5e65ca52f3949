/** The finding about memory that will run out. */
import { ahead as inTime } from '../core/forecast-words.ts'
import { formatBytes, formatPercent } from '../core/format.ts'
import { leakLineText } from '../core/memory/line-recording.ts'
import type { Forecast } from '../core/memory/oom-forecast.ts'
import { severityOf } from '../core/memory/oom-risk.ts'
import type { RecordedLine, RiskLevel } from '../core/model.ts'
import type { FindingDraft } from './finding.ts'
import { lineAdvice, lineEvidence } from './leak-message.ts'
import { evidenceNumber } from './words.ts'

/** `run`: the run (`NAME, rank 1`) whose allocator is followed; null: the device itself. */
export interface OomPlace {
  readonly gpu: string | null
  readonly run: string | null
}

export interface OomStatement {
  readonly at: number
  readonly place: OomPlace
  readonly forecast: Forecast
  readonly capacity: number
  readonly risk: RiskLevel
  readonly ahead: number
  readonly evidence: number
  readonly level: number
  readonly since: number
  /** The line that was recorded to leak. */
  readonly line: RecordedLine | null
}

export function oomDraft(said: OomStatement): FindingDraft {
  const { at, place, forecast, capacity, risk, ahead, evidence, line } = said
  const allocator = place.run !== null
  const earliest = Math.max(at, forecast.earliest * 1000)
  const latest = Math.max(earliest, forecast.latest * 1000)
  const expected = Math.min(latest, Math.max(earliest, at + ahead * 1000))
  const who = place.gpu ?? `Run ${place.run}`
  const when =
    forecast.room <= 0
      ? 'may run out of memory at the next peak'
      : `will run out of memory ${inTime(expected - at, earliest - at, latest - at)}`
  const level = `${formatPercent(said.level)} of ${formatBytes(capacity)}`
  const need = allocator ? `${place.gpu === null ? 'it' : `run ${place.run}`} needs ${level}` : `${level} is in use`
  const doubt = allocator ? '' : ' Seen from the device only: a cache that the program would free looks the same.'
  const leak = line === null ? '' : ` Leak: ${leakLineText(line)}.`
  return {
    severity: severityOf(risk),
    riskLevel: risk,
    since: said.since,
    message: `${who} ${when}: ${need}, growing ${formatBytes(forecast.slope * capacity * 60)} per minute.${leak}${doubt}`,
    evidence: {
      source: allocator ? 'allocator' : 'device',
      levelRatio: evidenceNumber(said.level),
      capacityBytes: Math.round(capacity),
      roomBytes: Math.round(forecast.room * capacity),
      bytesPerSecond: Math.round(forecast.slope * capacity),
      evidenceSeconds: evidenceNumber(evidence),
      spread: evidenceNumber(forecast.spread),
      ...lineEvidence(line),
    },
    confidence: Math.max(
      0.1,
      (1 - 0.6 * Math.min(1, forecast.spread)) * (allocator ? 1 : 0.7) * Math.min(1, 0.6 + evidence / Math.max(1, ahead) / 2),
    ),
    advice: line !== null ? ['Save a checkpoint now.', lineAdvice(line)] : allocator ? ADVICE_RUN : ADVICE_DEVICE,
    predictedAt: Math.round(expected),
    predictedEarliestAt: Math.round(earliest),
    predictedLatestAt: Math.round(latest),
  }
}

const ADVICE_RUN = [
  'Save a checkpoint now.',
  'Reduce the batch size or the sequence length, or use gradient checkpointing.',
  'Look for a leak: tensors kept from step to step. gpuwarden snapshot --run NAME records the line (Python SDK with PyTorch).',
]
const ADVICE_DEVICE = [
  'Prepare to release cache (torch.cuda.empty_cache()).',
  'Consider reducing batch size.',
  'Report steps with the SDK: the forecast then follows what the allocator needs, not what it caches.',
]
