/** The life of a finding: it starts, is updated sparingly, and is resolved; its fingerprint is the detector and its subject. */
import { BoundedMap } from '../core/bounded-map.ts'
import type { Finding, FindingSubject, Reading, RiskLevel, Severity } from '../core/model.ts'

/** Shared, so that an empty answer allocates nothing. */
export const NO_FINDINGS: readonly Finding[] = Object.freeze([])

/** Far more than there are subjects: only a bug or an attack reaches it, and then new findings are refused, none is ended. */
const ACTIVE_CAP = 4096
const REFRESH_MS = 60_000

/** What a detector reports; the rest of a Finding follows from its subject. */
export interface FindingDraft {
  readonly severity: Severity
  readonly message: string
  readonly evidence: Readonly<Record<string, number | string | boolean | null>>
  readonly confidence: number
  readonly advice: readonly string[]
  /** When it began, if before now; only the first one counts. */
  readonly since?: number
  readonly predictedAt?: Reading
  readonly predictedEarliestAt?: Reading
  readonly predictedLatestAt?: Reading
  readonly riskLevel?: RiskLevel | null
}

export interface FindingEnd {
  readonly message: string
  readonly evidence: FindingDraft['evidence']
}

export function subjectOf(parts: Partial<FindingSubject>): FindingSubject {
  return { host: null, gpu: null, gpuIndex: null, pid: null, user: null, run: null, rank: null, ...parts }
}

/** `intruder|gpu=GPU-1|pid=42`. Index and user are left out: they may become known later and must not rename the finding. */
export function fingerprintOf(detector: string, subject: FindingSubject, part = ''): string {
  let print = part === '' ? detector : `${detector}|${part}`
  if (subject.gpu !== null) print += `|gpu=${subject.gpu}`
  if (subject.pid !== null) print += `|pid=${subject.pid}`
  if (subject.run !== null) print += `|run=${subject.run}`
  if (subject.rank !== null) print += `|rank=${subject.rank}`
  if (subject.gpu === null && subject.run === null && subject.pid === null && subject.host !== null) print += `|host=${subject.host}`
  return print
}

interface Entry {
  finding: Finding
  saidAt: number
}

/** The active findings of one detector. */
export class FindingBook {
  readonly #detector: string
  readonly #refreshMs: number
  readonly #active = new BoundedMap<string, Entry>(ACTIVE_CAP)

  constructor(detector: string, refreshMs = REFRESH_MS) {
    this.#detector = detector
    this.#refreshMs = refreshMs
  }

  get size(): number {
    return this.#active.size
  }

  /** `part` separates findings about one subject: `code=79`, `source=nvidia`. */
  key(subject: FindingSubject, part = ''): string {
    return fingerprintOf(this.#detector, subject, part)
  }

  has(key: string): boolean {
    return this.#active.has(key)
  }

  get(key: string): Finding | undefined {
    return this.#active.get(key)?.finding
  }

  keys(): string[] {
    return [...this.#active.keys()]
  }

  some(test: (finding: Finding) => boolean): boolean {
    for (const { finding } of this.#active.values()) if (test(finding)) return true
    return false
  }

  /** Whether raise() would report now: ask before building a message on every sample. */
  due(key: string, at: number, severity: Severity, riskLevel: RiskLevel | null = null): boolean {
    const entry = this.#active.get(key)
    if (!entry || entry.finding.severity !== severity || entry.finding.riskLevel !== riskLevel) return true
    if (at < entry.saidAt) entry.saidAt = at
    // The longer a finding lasts, the less often it is repeated.
    return at - entry.saidAt >= Math.max(this.#refreshMs, (entry.saidAt - entry.finding.since) / 2)
  }

  /** Starts the finding about this subject, or updates it when due. `part`: see key(). */
  raise(subject: FindingSubject, at: number, draft: FindingDraft, part = ''): readonly Finding[] {
    const key = this.key(subject, part)
    if (!this.due(key, at, draft.severity, draft.riskLevel ?? null)) return NO_FINDINGS
    const before = this.#active.get(key)
    if (before === undefined && this.#active.size >= ACTIVE_CAP) return NO_FINDINGS
    const finding: Finding = {
      fingerprint: key,
      detector: this.#detector,
      // The engine sets it.
      provenance: 'live',
      subject,
      severity: draft.severity,
      state: 'active',
      at,
      since: Math.min(before?.finding.since ?? draft.since ?? at, at),
      message: draft.message,
      evidence: draft.evidence,
      confidence: Math.max(0, Math.min(1, draft.confidence)),
      advice: draft.advice,
      predictedAt: draft.predictedAt ?? null,
      predictedEarliestAt: draft.predictedEarliestAt ?? null,
      predictedLatestAt: draft.predictedLatestAt ?? null,
      riskLevel: draft.riskLevel ?? null,
    }
    this.#active.set(key, { finding, saidAt: at })
    return [finding]
  }

  /** Ends the finding with this key, if there is one. `evidence` is added to its own. */
  resolve(key: string, at: number, message?: string, evidence?: FindingDraft['evidence']): readonly Finding[] {
    const entry = this.#active.get(key)
    if (!entry) return NO_FINDINGS
    this.#active.delete(key)
    const end = resolved(entry.finding, at, message ?? `Over: ${entry.finding.message}`)
    return [evidence === undefined ? end : { ...end, evidence: { ...end.evidence, ...evidence } }]
  }

  /** Ends every finding that the test picks; `end`: the message for all, or for each. */
  resolveWhere(test: (finding: Finding) => boolean, at: number, end?: string | ((finding: Finding) => FindingEnd)): readonly Finding[] {
    if (this.#active.size === 0) return NO_FINDINGS
    let ended: Finding[] | null = null
    for (const [key, entry] of this.#active)
      if (test(entry.finding)) {
        ended ??= []
        const { message, evidence } = typeof end === 'function' ? end(entry.finding) : { message: end, evidence: undefined }
        ended.push(...this.resolve(key, at, message, evidence))
      }
    return ended ?? NO_FINDINGS
  }

  /** Of one rank of a run, by its rankKey. */
  resolveRank(key: string, at: number, end: string | ((finding: Finding) => FindingEnd)): readonly Finding[] {
    return this.resolveWhere(isOfRank(key), at, end)
  }

  hasRank(key: string): boolean {
    return this.#active.size > 0 && this.some(isOfRank(key))
  }

  snapshot(): unknown {
    return this.#active.saved()
  }

  restore(state: unknown): void {
    this.#active.load(state)
  }
}

function isOfRank(key: string): (finding: Finding) => boolean {
  const rank = Number.parseInt(key, 10)
  const run = key.slice(key.indexOf('@') + 1)
  return ({ subject }) => subject.run === run && subject.rank === rank
}

export function resolved(finding: Finding, at: number, message: string): Finding {
  return {
    ...finding,
    state: 'resolved',
    at: Math.max(at, finding.since),
    message,
    predictedAt: null,
    predictedEarliestAt: null,
    predictedLatestAt: null,
  }
}

/** Joins two answers without copying when one of them is empty. */
export function both(first: readonly Finding[], second: readonly Finding[]): readonly Finding[] {
  if (second.length === 0) return first
  if (first.length === 0) return second
  return [...first, ...second]
}
