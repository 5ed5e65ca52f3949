/** Findings of a log folder: of repeated reports the start, the worst severity and the last message count. */
import type { Finding, Severity } from '../core/model.ts'
import { parseObject, parseTimestamp } from '../core/recording/json.ts'
import type { SummaryFinding } from './training-summary.ts'

const MOST_FINDINGS = 2000
const SEVERITIES: readonly Severity[] = ['info', 'warning', 'critical']

interface Said extends Omit<SummaryFinding, 'until' | 'advice'> {
  readonly fingerprint: string
  readonly since: number
  readonly isOver: boolean
  /** null: not said. */
  readonly advice: readonly string[] | null
}

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
    this.#take({
      fingerprint,
      at,
      since: Math.min(at, parseTimestamp(record.since) ?? at),
      isOver: record.state === 'resolved',
      detector: String(record.detector),
      severity: SEVERITIES.find((one) => one === record.severity) ?? 'info',
      message: String(record.message),
      gpuIndex: typeof record.gpu_index === 'number' ? record.gpu_index : null,
      run: typeof record.run === 'string' ? record.run : null,
      advice: Array.isArray(record.advice) ? record.advice.map(String) : null,
    })
    return true
  }

  /** One that no file holds. */
  accept({ fingerprint, at, since, state, detector, severity, message, advice, subject: { gpuIndex, run } }: Finding): void {
    this.#take({
      fingerprint,
      at,
      since: Math.min(at, since),
      isOver: state === 'resolved',
      detector,
      severity,
      message,
      gpuIndex,
      run,
      advice,
    })
  }

  #take(said: Said): void {
    const { fingerprint, isOver } = said
    let known = this.#latest.get(fingerprint)
    if (known && known.until !== null && !isOver) {
      this.#earlier.push(known)
      known = undefined
    }
    if (!known && (isOver || this.#latest.size + this.#earlier.length >= MOST_FINDINGS)) return
    this.#latest.set(fingerprint, {
      at: known?.at ?? said.since,
      until: isOver ? said.at : null,
      detector: said.detector,
      severity: known && SEVERITIES.indexOf(known.severity) > SEVERITIES.indexOf(said.severity) ? known.severity : said.severity,
      message: isOver && known ? known.message : said.message,
      gpuIndex: said.gpuIndex,
      run: said.run,
      advice: said.advice ?? known?.advice ?? [],
    })
  }

  /** In order of their start. */
  between(from: number, to: number): SummaryFinding[] {
    return [...this.#earlier, ...this.#latest.values()]
      .filter(({ at, until }) => at <= to && (until ?? Number.POSITIVE_INFINITY) >= from)
      .sort((a, b) => a.at - b.at)
  }
}
