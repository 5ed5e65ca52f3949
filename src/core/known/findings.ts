/** The active findings, their order and their counts. */
import type { Finding, Severity } from '../model.ts'

const MOST_FINDINGS = 1024
const MOST_RESOLVED = 100
const SEVERITY_ORDER: Readonly<Record<Severity, number>> = { critical: 0, warning: 1, info: 2 }

/** Worst first, then newest; the fingerprint decides ties, so that the order is the same everywhere. */
export function compareFindings(a: Finding, b: Finding): number {
  return SEVERITY_ORDER[a.severity] - SEVERITY_ORDER[b.severity] || b.since - a.since || (a.fingerprint < b.fingerprint ? -1 : 1)
}

export function countBySeverity(findings: readonly Finding[]): Readonly<Record<Severity, number>> {
  const counts = { critical: 0, warning: 0, info: 0 }
  for (const { severity } of findings) counts[severity]++
  return counts
}

/** `15 findings` */
export function findingsInWords({ length }: readonly Finding[]): string {
  return `${length} ${length === 1 ? 'finding' : 'findings'}`
}

export function worstSeverity(findings: readonly Finding[]): Severity | null {
  const { critical, warning, info } = countBySeverity(findings)
  return critical > 0 ? 'critical' : warning > 0 ? 'warning' : info > 0 ? 'info' : null
}

export class KnownFindings {
  readonly #active = new Map<string, Finding>()
  #list: readonly Finding[] | null = null
  #resolved: readonly Finding[] = []

  /** The same array until something changes. */
  get list(): readonly Finding[] {
    this.#list ??= [...this.#active.values()].sort(compareFindings)
    return this.#list
  }

  /** Newest first. */
  get resolved(): readonly Finding[] {
    return this.#resolved
  }

  get(fingerprint: string): Finding | undefined {
    return this.#active.get(fingerprint)
  }

  accept(finding: Finding): void {
    const { fingerprint } = finding
    if (finding.state === 'resolved') {
      if (!this.#active.delete(fingerprint)) return
      this.#resolved = [finding, ...this.#resolved.slice(0, MOST_RESOLVED - 1)]
    } else {
      if (!this.#active.has(fingerprint) && this.#active.size >= MOST_FINDINGS) return
      this.#active.set(fingerprint, finding)
    }
    this.#list = null
  }

  begin(findings: readonly Finding[]): void {
    this.#active.clear()
    for (const finding of findings) this.#active.set(finding.fingerprint, finding)
    this.#list = null
  }

  forgetResolved(): void {
    this.#resolved = []
  }
}
