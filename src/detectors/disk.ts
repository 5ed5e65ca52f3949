/** The disk of the log folder is nearly full: soon nothing can be stored. */
import type { Detector, DetectorKind } from '../core/detector-contract.ts'
import { formatBytes, formatPercent } from '../core/format.ts'
import type { Finding, HostSample, Severity } from '../core/model.ts'
import { FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { THRESHOLDS, type Thresholds } from './thresholds.ts'
import { evidenceNumber } from './words.ts'

/** Hysteresis of critical. */
const CRITICAL_GAP = 0.005

export const disk: DetectorKind<Thresholds<'disk'>> = {
  name: 'disk',
  about: 'The disk of the log folder is nearly full.',
  severities: ['warning', 'critical'],
  inputs: ['host'],
  findsAgainSeconds: 60,
  patienceSeconds: 60,
  defaults: THRESHOLDS.disk,
  create: (options) => createDisk(options),
}

function createDisk({ fullRatio, clearRatio, criticalRatio }: Thresholds<'disk'>): Detector {
  const book = new FindingBook('disk')

  function look({ at, hostname, diskFreeBytes: free, diskTotalBytes: total }: HostSample): readonly Finding[] {
    if (free === null || total === null || total <= 0) return NO_FINDINGS
    const used = 1 - free / total
    if (used < fullRatio && book.size === 0) return NO_FINDINGS
    const subject = subjectOf({ host: hostname })
    const key = book.key(subject)
    const open = book.get(key)?.severity ?? null
    if (used < (open === null ? fullRatio : Math.min(clearRatio, fullRatio)))
      return book.resolve(key, at, `The disk of the log folder is down to ${formatPercent(used)}.`)
    const severity: Severity = used >= criticalRatio - (open === 'critical' ? CRITICAL_GAP : 0) ? 'critical' : 'warning'
    if (!book.due(key, at, severity)) return NO_FINDINGS
    return book.raise(subject, at, {
      severity,
      message: `The disk of the log folder is ${formatPercent(used)} full; ${formatBytes(free)} left.`,
      evidence: { disk_free_bytes: free, disk_total_bytes: total, disk_ratio: evidenceNumber(used), threshold: fullRatio },
      confidence: 1,
      advice: ['Free some space, or lower log.keep_total_mb and log.keep_days.'],
    })
  }

  return {
    accept: (input) => (input.type === 'host' ? look(input.sample) : NO_FINDINGS),
    snapshot: () => book.snapshot(),
    restore: (state) => book.restore(state),
  }
}
