/** Findings of a log folder: of repeated reports the start, the worst severity and the last message count. */
import type { Severity } from '../core/model.ts'
import { parseObject, parseTimestamp } from '../core/recording/json.ts'
import type { SummaryFinding } from './training-summary.ts'

const MOST_FINDINGS = 2000
const SEVERITIES: readonly Severity[] = ['info', 'warning', 'critical']

export class FindingReader {
  /** By fingerprint: the open or last ones. */
  readonly #latest = new Map<string, SummaryFinding>()
  /** Those that came back later. */
  readonly #earlier: SummaryFinding[] = []

  /** False: the line cannot be used. */
  take(line: string): boolean {
    const record = parseObject(line)
    if (typeof record === 'string') return false
    const at = parseTimestamp(record.at)
    const { fingerprint } = record
    if (at === null || typeof fingerprint !== 'string') return false
    const isOver = record.state === 'resolved'
    let known = this.#latest.get(fingerprint)
    if (known && known.until !== null && !isOver) {
      this.#earlier.push(known)
      known = undefined
    }
    if (!known && (isOver || this.#latest.size + this.#earlier.length >= MOST_FINDINGS)) return true
    const severity = SEVERITIES.find((one) => one === record.severity) ?? 'info'
    this.#latest.set(fingerprint, {
      at: known?.at ?? Math.min(at, parseTimestamp(record.since) ?? at),
      until: isOver ? at : null,
      detector: String(record.detector),
      severity: known && SEVERITIES.indexOf(known.severity) > SEVERITIES.indexOf(severity) ? known.severity : severity,
      message: isOver && known ? known.message : String(record.message),
      gpuIndex: typeof record.gpu_index === 'number' ? record.gpu_index : null,
      run: typeof record.run === 'string' ? record.run : null,
      advice: Array.isArray(record.advice) ? record.advice.map(String) : (known?.advice ?? []),
    })
    return true
  }

  /** In order of their start. */
  between(from: number, to: number): SummaryFinding[] {
    return [...this.#earlier, ...this.#latest.values()]
      .filter(({ at, until }) => at <= to && (until ?? Number.POSITIVE_INFINITY) >= from)
      .sort((a, b) => a.at - b.at)
  }
}
