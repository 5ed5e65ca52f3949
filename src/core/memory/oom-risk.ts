/** How serious a forecast is, by the time left and by the evidence. */
import type { RiskLevel, Severity } from '../model.ts'

export interface RiskInput {
  /** Expected seconds until full. */
  readonly ahead: number
  /** Share of capacity that is left above the worst recent peak. */
  readonly room: number
  /** Seconds of rise behind it. */
  readonly evidence: number
  /** From the allocator, not from the device. */
  readonly allocator: boolean
  /** The device was full before and nothing happened. */
  readonly doubtful: boolean
  /** The level so far, for hysteresis. */
  readonly before: RiskLevel | null
}

const HIGH = 3600
const MEDIUM = 6 * 3600
const CRITICAL = 900
/** Critical: little time compared with the time it took to get here, and little free memory. */
const CRITICAL_SHARE = 0.25
const CRITICAL_ROOM = 0.1
/** A short rise predicts a near end only after this share of the time ahead; longer from the device only. */
const HIGH_SHARE = { allocator: 0.5, device: 1 } as const
const LONG_EVIDENCE = 600
const LEAVE = 1.3

export function riskOf({ ahead, room, evidence, allocator, doubtful, before }: RiskInput): RiskLevel {
  const slack = (level: RiskLevel) => (before === level || (before === 'critical' && level === 'high') ? LEAVE : 1)
  // A caching allocator that fills the device looks the same: the device alone is not critical in the first minutes.
  const sure = allocator || evidence >= LONG_EVIDENCE
  if (
    sure &&
    !doubtful &&
    room <= slack('critical') * CRITICAL_ROOM &&
    ahead <= slack('critical') * Math.min(CRITICAL, CRITICAL_SHARE * evidence)
  )
    return 'critical'
  const enough = evidence >= LONG_EVIDENCE || evidence * slack('high') >= HIGH_SHARE[allocator ? 'allocator' : 'device'] * ahead
  if (enough && !doubtful && ahead <= slack('high') * HIGH) return 'high'
  return ahead <= slack('medium') * MEDIUM ? 'medium' : 'low'
}

export function severityOf(risk: RiskLevel): Severity {
  return risk === 'critical' ? 'critical' : risk === 'high' ? 'warning' : 'info'
}
