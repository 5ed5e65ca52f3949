/** Which runs are asked to record the lines that keep memory, when, and for how many steps. Runs without a leak are never asked. */
import { randomBytes } from 'node:crypto'
import { BoundedMap } from '../core/bounded-map.ts'
import type { LineRecording, RecordingKind, RecordingTrigger } from '../core/memory/line-recording.ts'
import { rankKey } from '../core/memory/run-map.ts'
import type { Finding, Reading } from '../core/model.ts'

export interface RecordingRequest {
  readonly id: string
  readonly run: string
  /** null: whichever rank reports next. */
  readonly rank: number | null
  readonly kind: RecordingKind
  /** null: as many as fit the time of a step. */
  readonly steps: number | null
  readonly trigger: RecordingTrigger
  readonly askedAt: number
  /** When an SDK was first asked. */
  sentAt: Reading
}

/** What an SDK finds in the answer to its steps. */
export interface RecordOrder {
  readonly id: string
  readonly kind: RecordingKind
  readonly steps: number
  readonly trigger: RecordingTrigger
}

interface Attempts {
  count: number
  lastAt: number
  /** A line was named, or the SDK cannot: it is not asked again for this leak. */
  settledFor: Reading
}

export const FEWEST_STEPS = 6
export const MOST_STEPS = 1000
/** A recording aims at this time, within bounds: fast steps are bound by launches, where it costs most; slow ones take long. */
const TARGET_SECONDS = 8
const STEPS_WITHIN = { least: 12, most: 40 } as const
const MOST_ATTEMPTS = 3
const PAUSE_MS = 60_000
/** An SDK that has not answered by then will not. */
const WAIT_MS = 600_000
/** Ranks of one run that record at the same time: they run the same program. */
const MOST_AT_ONCE = 2
const MOST_RUNS = 256

export function stepsFor(stepSeconds: Reading): number {
  if (stepSeconds === null || stepSeconds <= 0) return 20
  return Math.max(STEPS_WITHIN.least, Math.min(STEPS_WITHIN.most, Math.round(TARGET_SECONDS / stepSeconds)))
}

export class RecordingRequests {
  readonly #now: () => number
  readonly #waiting = new BoundedMap<string, RecordingRequest>(MOST_RUNS)
  readonly #attempts = new BoundedMap<string, Attempts>(MOST_RUNS)

  constructor(now: () => number) {
    this.#now = now
  }

  /** The request that follows from a finding; null: none. */
  afterFinding(finding: Finding): RecordingRequest | null {
    const { run, rank } = finding.subject
    const kind = finding.evidence.source === 'host memory' ? 'host' : 'gpu'
    // Host memory is of all processes of a run.
    if (run === null || (rank === null && kind === 'gpu') || !isReason(finding)) return null
    const now = this.#now()
    const own = this.of(run)
    if (own.length >= MOST_AT_ONCE || own.some((request) => request.rank === rank || request.rank === null)) return null
    const key = rank === null ? `host ${run}` : rankKey(run, rank)
    const before = this.#attempts.get(key)
    // A leak that begins later is another one.
    const isSettled = before !== undefined && before.settledFor !== null && finding.since <= before.settledFor
    const attempts = before && before.settledFor !== null && !isSettled ? undefined : before
    if (isSettled || (attempts && (attempts.count >= MOST_ATTEMPTS || now - attempts.lastAt < PAUSE_MS))) return null
    this.#attempts.set(key, { count: (attempts?.count ?? 0) + 1, lastAt: now, settledFor: null })
    // What a first look did not catch may happen less often.
    const steps = attempts ? STEPS_WITHIN.most * 2 ** attempts.count : null
    return this.ask({ run, rank, kind, steps, trigger: finding.detector === 'leak' ? 'leak' : 'oom' })
  }

  ask(request: Omit<RecordingRequest, 'id' | 'askedAt' | 'sentAt'>): RecordingRequest {
    const made = { ...request, id: randomBytes(8).toString('hex'), askedAt: this.#now(), sentAt: null }
    this.#waiting.set(made.id, made)
    return made
  }

  /** Repeated with every answer until the result is there: an answer may get lost. */
  orderFor(run: string, rank: number, stepSeconds: Reading): RecordOrder | null {
    if (this.#waiting.size === 0) return null
    const request = this.of(run).find((one) => one.rank === null || one.rank === rank)
    if (!request) return null
    request.sentAt ??= this.#now()
    return { id: request.id, kind: request.kind, steps: request.steps ?? stepsFor(stepSeconds), trigger: request.trigger }
  }

  /** Of one run, oldest first. */
  of(run: string): RecordingRequest[] {
    const now = this.#now()
    for (const [id, { askedAt }] of this.#waiting) if (now - askedAt > WAIT_MS) this.#waiting.delete(id)
    return [...this.#waiting.values()].filter((request) => request.run === run)
  }

  done(run: string, { id, rank, kind, reason, lines }: LineRecording): void {
    this.#waiting.delete(id)
    const attempts = this.#attempts.get(rankKey(run, rank))
    if (attempts && kind === 'gpu' && (reason !== null || lines.length > 0)) attempts.settledFor = this.#now()
  }

  /** The run is over. */
  drop(run: string): void {
    for (const [id, request] of this.#waiting) if (request.run === run) this.#waiting.delete(id)
  }
}

/** A leak, or memory that will run out soon; of a real run. */
function isReason({ detector, severity, state, provenance, evidence }: Finding): boolean {
  if (state !== 'active' || provenance !== 'live' || (evidence.source !== 'allocator' && evidence.source !== 'host memory')) return false
  return detector === 'leak' || (detector === 'oom' && severity !== 'info')
}
