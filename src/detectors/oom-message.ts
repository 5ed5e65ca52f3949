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
  /** Host memory: the name of the machine, or of what its limit holds for. */
  readonly host?: string
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
  const isHost = place.host !== undefined
  const allocator = place.run !== null && !isHost
  const earliest = Math.max(at, forecast.earliest * 1000)
  const latest = Math.max(earliest, forecast.latest * 1000)
  const expected = Math.min(latest, Math.max(earliest, at + ahead * 1000))
  const who = place.gpu ?? (place.run === null ? `Host ${place.host}` : `Run ${place.run}`)
  const what = isHost ? 'host memory' : 'memory'
  const when =
    forecast.room <= 0
      ? `may run out of ${what} at the next peak`
      : `will run out of ${what} ${inTime(expected - at, earliest - at, latest - at)}`
  const level = `${formatPercent(said.level)} of ${formatBytes(capacity)}`
  const need = allocator ? `${place.gpu === null ? 'it' : `run ${place.run}`} needs ${level}` : `${level} is in use`
  const doubt = allocator || isHost ? '' : ' Seen from the device only: a cache that the program would free looks the same.'
  const leak = line === null ? '' : ` Leak: ${leakLineText(line)}.`
  return {
    severity: severityOf(risk),
    riskLevel: risk,
    since: said.since,
    message: `${who} ${when}: ${need}, growing ${formatBytes(forecast.slope * capacity * 60)} per minute.${leak}${doubt}`,
    evidence: {
      source: isHost ? 'host memory' : allocator ? 'allocator' : 'device',
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
      (1 - 0.6 * Math.min(1, forecast.spread)) *
        (allocator ? 1 : isHost ? 0.85 : 0.7) *
        Math.min(1, 0.6 + evidence / Math.max(1, ahead) / 2),
    ),
    advice: line !== null ? ['Save a checkpoint now.', lineAdvice(line)] : isHost ? ADVICE_HOST : allocator ? ADVICE_RUN : ADVICE_DEVICE,
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
const ADVICE_HOST = [
  'Save a checkpoint now: the kernel kills a process when host memory runs out.',
  'Use fewer data loader workers or a smaller prefetch_factor, and keep less on the CPU from step to step.',
  'gpuwarden snapshot --run NAME --host records which line keeps memory (Python SDK).',
]
const ADVICE_DEVICE = [
  'Prepare to release cache (torch.cuda.empty_cache()).',
  'Consider reducing batch size.',
  'Report steps with the SDK: the forecast then follows what the allocator needs, not what it caches.',
]
