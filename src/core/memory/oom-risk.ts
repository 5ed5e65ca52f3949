/** How grave a forecast is: by the time that is left, and by how much there is to go by. */
import type { RiskLevel, Severity } from '../model.ts'

export interface RiskInput {
  /** Seconds until full, as expected. */
  readonly ahead: number
  /** Share of capacity that is left above the worst recent peak. */
  readonly room: number
  /** Seconds of rise that say so. */
  readonly evidence: number
  /** From allocator figures, not from the device alone. */
  readonly allocator: boolean
  /** The device was full before and nothing happened: it may well be so again. */
  readonly doubtful: boolean
  /** What was said before: a level is left only when it is clearly passed. */
  readonly before: RiskLevel | null
}

const HIGH = 3600
const MEDIUM = 6 * 3600
const CRITICAL = 900
/** Critical: little time against the time it took to get here, and little room. */
const CRITICAL_SHARE = 0.25
const CRITICAL_ROOM = 0.1
/** A short rise promises a near end only when it has lasted this share of the time ahead: longer where only the device speaks. */
const HIGH_SHARE = { allocator: 0.5, device: 1 } as const
const LONG_EVIDENCE = 600
const LEAVE = 1.3

export function riskOf({ ahead, room, evidence, allocator, doubtful, before }: RiskInput): RiskLevel {
  const slack = (level: RiskLevel) => (before === level || (before === 'critical' && level === 'high') ? LEAVE : 1)
  // A caching allocator that fills the device looks like this too: the device alone does not make it critical in its first minutes.
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
