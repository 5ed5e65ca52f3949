/** The findings of a period: each once, with its latest message and its end. */
import type { Finding, Reading } from '../core/model.ts'

const MOST = 500

/** A finding as reports write it. */
export interface ReportedFinding {
  /** When it was first reported. */
  readonly at: string
  /** When it was last reported; the fields below are from then. */
  readonly updated_at: string
  readonly since: string
  readonly resolved_at: string | null
  readonly detector: string
  readonly severity: string
  readonly state: string
  readonly gpu: number | null
  readonly pid: number | null
  readonly user: string | null
  readonly run: string | null
  readonly message: string
  readonly evidence: Finding['evidence']
  readonly confidence: number
  readonly advice: readonly string[]
  readonly predicted_at: string | null
  readonly risk_level: string | null
}

interface Entry {
  readonly firstAt: number
  /** The latest one that was active. */
  readonly said: Finding
  readonly resolvedAt: Reading
}

export class FindingLog {
  readonly #entries = new Map<string, Entry>()
  leftOut = 0

  accept(finding: Finding): void {
    const known = this.#entries.get(finding.fingerprint)
    if (finding.state === 'resolved') {
      if (known !== undefined) this.#entries.set(finding.fingerprint, { ...known, resolvedAt: finding.at })
      return
    }
    if (known === undefined && this.#entries.size >= MOST) {
      this.leftOut++
      return
    }
    this.#entries.set(finding.fingerprint, { firstAt: known?.firstAt ?? finding.at, said: finding, resolvedAt: null })
  }

  /** In the order in which they were first reported. */
  list(): readonly Entry[] {
    return [...this.#entries.values()].sort((a, b) => a.firstAt - b.firstAt)
  }

  reported(): ReportedFinding[] {
    return this.list().map(({ firstAt, said, resolvedAt }) => ({
      at: iso(firstAt),
      updated_at: iso(said.at),
      since: iso(said.since),
      resolved_at: resolvedAt === null ? null : iso(resolvedAt),
      detector: said.detector,
      severity: said.severity,
      state: resolvedAt === null ? 'active' : 'resolved',
      gpu: said.subject.gpuIndex,
      pid: said.subject.pid,
      user: said.subject.user,
      run: said.subject.run,
      message: said.message,
      evidence: said.evidence,
      confidence: said.confidence,
      advice: said.advice,
      predicted_at: said.predictedAt === null ? null : iso(said.predictedAt),
      risk_level: said.riskLevel,
    }))
  }
}

function iso(at: number): string {
  return new Date(Math.min(8.64e15, Math.max(-8.64e15, at))).toISOString()
}
