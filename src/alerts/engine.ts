/** The state machine of alerts, one per fingerprint: inactive → pending → firing → resolved. Pure: time comes with the input. */
import type { Finding } from '../core/model.ts'
import { type AlertRecord, jsonSafe, SEVERITY_RANK } from './alert-record.ts'
import { ObservedTime, type ObservedTimeState } from './observed-time.ts'

/** How long a problem must last before it fires, and be gone before it is over. */
export interface Patience {
  readonly forMs: number
  readonly keepFiringMs: number
}

export const ENGINE_LIMITS = {
  records: 2000,
  /** Coming back this often within the window is flapping. */
  flapTurns: 3,
  flapWindowMs: 3_600_000,
  /** How long a flapping problem must be clear; doubles with every further turn, up to the window. */
  flapHoldMs: 300_000,
}
export type EngineLimits = Readonly<typeof ENGINE_LIMITS>

export type Transition =
  | { readonly type: 'pending' | 'firing' | 'worse' | 'resolved'; readonly record: AlertRecord }
  /** Never fired, or was over long ago. */
  | { readonly type: 'forgotten'; readonly record: AlertRecord }

export interface EngineSnapshot {
  readonly time: ObservedTimeState
  readonly records: readonly AlertRecord[]
}

const NOTHING: readonly Transition[] = Object.freeze([])

export class AlertEngine {
  readonly #limits: EngineLimits
  readonly #patienceOf: (finding: Finding) => Patience
  readonly #time = new ObservedTime()
  readonly #records = new Map<string, AlertRecord>()
  /** The time of the input at hand. */
  #at = 0
  #refused = 0

  constructor(patienceOf: (finding: Finding) => Patience, limits: EngineLimits = ENGINE_LIMITS) {
    this.#patienceOf = patienceOf
    this.#limits = limits
  }

  /** Findings without room: too many other problems at once, none of them less severe. */
  get refused(): number {
    return this.#refused
  }

  get nowMs(): number {
    return this.#time.ms
  }

  get(fingerprint: string): AlertRecord | undefined {
    return this.#records.get(fingerprint)
  }

  records(): IterableIterator<AlertRecord> {
    return this.#records.values()
  }

  get hasUnconfirmed(): boolean {
    for (const { unconfirmed } of this.#records.values()) if (unconfirmed) return true
    return false
  }

  get size(): number {
    return this.#records.size
  }

  /** Whether the problem ended after this finding: a restored detector may be older than the journal. */
  isOldNews({ fingerprint, at }: Finding): boolean {
    const record = this.#records.get(fingerprint)
    return record?.phase === 'resolved' && at <= (record.cleared?.at ?? record.resolvedAt ?? 0)
  }

  /** One finding, at its own time. */
  accept(finding: Finding, at: number, simulated = false): readonly Transition[] {
    // Detectors repeat old findings after a restart: these do not set the time back.
    const ms = this.#time.isPast(at) ? this.#time.ms : this.#time.advance(at)
    this.#at = at
    return finding.state === 'active' ? this.#active(jsonSafe(finding), ms, simulated) : this.#cleared(jsonSafe(finding), ms)
  }

  /** An alert from before a restart is known to have ended: over at once, whoever has not confirmed it. */
  endUnconfirmed(ending: Finding): readonly Transition[] {
    const record = this.#records.get(ending.fingerprint)
    if (record?.phase !== 'firing' || !record.unconfirmed) return NOTHING
    record.unconfirmed = false
    record.cleared = jsonSafe(ending)
    return [this.#resolve(record, this.#time.ms)]
  }

  /** Time passes: what waited may be due. */
  advance(at: number): readonly Transition[] {
    const ms = this.#time.advance(at)
    this.#at = at
    let out: Transition[] | null = null
    for (const record of this.#records.values()) {
      const transition = this.#due(record, ms)
      if (transition) {
        out ??= []
        out.push(transition)
      }
    }
    return out ?? NOTHING
  }

  /** A recording starts over: its alerts never were. */
  forgetSimulated(): readonly Transition[] {
    this.#time.restore({ ms: this.#time.ms, lastAt: null })
    const forgotten = [...this.#records.values()].filter(({ simulated }) => simulated)
    for (const { fingerprint } of forgotten) this.#records.delete(fingerprint)
    return forgotten.map((record) => ({ type: 'forgotten', record }))
  }

  /** A recording is over, so nothing more can come of its alerts: those that wait never fired, those that fire are settled. */
  settleSimulated(at: number): readonly Transition[] {
    return [...this.#records.values()].flatMap((record): Transition[] => {
      if (!record.simulated || record.phase === 'resolved') return []
      if (record.phase === 'pending') {
        this.#records.delete(record.fingerprint)
        return [{ type: 'forgotten', record }]
      }
      if (record.cleared === null) {
        record.finding = {
          ...record.finding,
          state: 'resolved',
          at,
          message: `The recording ended while this was open: ${record.finding.message}`,
        }
        record.cleared = record.finding
      }
      return [this.#resolve(record, this.#time.ms)]
    })
  }

  snapshot(): EngineSnapshot {
    return structuredClone({ time: this.#time.snapshot(), records: [...this.#records.values()] })
  }

  timeSnapshot(): ObservedTimeState {
    return this.#time.snapshot()
  }

  restore(snapshot: EngineSnapshot): void {
    this.#time.restore(snapshot.time)
    this.#records.clear()
    for (const record of snapshot.records) this.#records.set(record.fingerprint, { ...record, unconfirmed: record.phase !== 'resolved' })
  }

  /** A record of a journal that was found late. Returns the one to keep; null: there is no room. */
  join(earlier: AlertRecord): AlertRecord | null {
    const known = this.#records.get(earlier.fingerprint)
    if (!known && this.#records.size >= this.#limits.records) return null
    const isOpen = earlier.phase !== 'resolved'
    if (known && !isOpen) return known
    // Reported anew since: the same problem goes on.
    const record = known && known.phase !== 'resolved' ? { ...earlier, finding: known.finding, unconfirmed: false } : earlier
    this.#records.set(record.fingerprint, known?.phase === 'resolved' ? known : { ...record, unconfirmed: isOpen && record === earlier })
    return this.#records.get(record.fingerprint) ?? null
  }

  #active(finding: Finding, ms: number, simulated: boolean): readonly Transition[] {
    const record = this.#records.get(finding.fingerprint)
    if (!record || record.phase === 'resolved') return this.#begin(finding, ms, simulated, record)
    const wasWorse = SEVERITY_RANK[finding.severity] > SEVERITY_RANK[record.finding.severity]
    record.finding = finding
    record.unconfirmed = false
    if (record.phase === 'pending') return asList(this.#due(record, ms))
    if (record.clearMs !== null) {
      record.clearMs = null
      record.cleared = null
      this.#turn(record, ms)
    }
    return wasWorse ? [{ type: 'worse', record }] : NOTHING
  }

  #begin(finding: Finding, ms: number, simulated: boolean, before: AlertRecord | undefined): readonly Transition[] {
    const out: Transition[] = []
    if (!before && this.#records.size >= this.#limits.records) {
      const victim = this.#leastMissed(finding)
      if (!victim) {
        this.#refused++
        return NOTHING
      }
      this.#records.delete(victim.fingerprint)
      out.push({ type: 'forgotten', record: victim })
    }
    const record: AlertRecord = {
      fingerprint: finding.fingerprint,
      phase: 'pending',
      finding,
      cleared: null,
      simulated,
      // The detector may have watched it for a while before it reported.
      pendingMs: ms - Math.max(0, finding.at - finding.since),
      firedAt: null,
      resolvedAt: null,
      resolvedMs: null,
      clearMs: null,
      turnsMs: before?.turnsMs ?? [],
      acknowledged: null,
      unconfirmed: false,
    }
    this.#records.set(record.fingerprint, record)
    const fired = this.#due(record, ms)
    out.push(fired ?? { type: 'pending', record })
    return out
  }

  #cleared(finding: Finding, ms: number): readonly Transition[] {
    const record = this.#records.get(finding.fingerprint)
    if (!record || record.phase === 'resolved') return NOTHING
    record.unconfirmed = false
    if (record.phase === 'pending') {
      this.#records.delete(record.fingerprint)
      return [{ type: 'forgotten', record }]
    }
    if (record.clearMs === null) {
      record.clearMs = ms
      record.cleared = finding
    }
    return asList(this.#due(record, ms))
  }

  #due(record: AlertRecord, ms: number): Transition | null {
    if (record.phase === 'pending') {
      // From before a restart: it may be over.
      if (record.unconfirmed) return null
      if (ms - record.pendingMs < this.#patienceOf(record.finding).forMs) return null
      record.phase = 'firing'
      record.firedAt = this.#at
      this.#turn(record, ms)
      return { type: 'firing', record }
    }
    if (record.phase === 'firing') {
      if (record.clearMs === null || ms - record.clearMs < this.#holdMs(record)) return null
      return this.#resolve(record, ms)
    }
    if (ms - (record.resolvedMs ?? ms) < this.#limits.flapWindowMs) return null
    this.#records.delete(record.fingerprint)
    return { type: 'forgotten', record }
  }

  #resolve(record: AlertRecord, ms: number): Transition {
    record.phase = 'resolved'
    record.resolvedAt = Math.max(record.cleared?.at ?? record.finding.at, record.firedAt ?? 0)
    record.resolvedMs = ms
    return { type: 'resolved', record }
  }

  #turn(record: AlertRecord, ms: number): void {
    const { flapWindowMs } = this.#limits
    record.turnsMs = [...record.turnsMs.filter((turn) => ms - turn < flapWindowMs), ms].slice(-16)
  }

  isFlapping(record: AlertRecord): boolean {
    return record.turnsMs.length >= this.#limits.flapTurns
  }

  #holdMs(record: AlertRecord): number {
    const { keepFiringMs } = this.#patienceOf(record.finding)
    const extra = record.turnsMs.length - this.#limits.flapTurns
    if (extra < 0) return keepFiringMs
    return Math.max(keepFiringMs, Math.min(this.#limits.flapHoldMs * 2 ** extra, this.#limits.flapWindowMs))
  }

  /** What makes room: something over, then something that never fired, then something less severe than the new one. */
  #leastMissed(finding: Finding): AlertRecord | null {
    let found: AlertRecord | null = null
    let lowest = 10 + SEVERITY_RANK[finding.severity]
    for (const record of this.#records.values()) {
      const worth = record.phase === 'resolved' ? 0 : record.phase === 'pending' ? 1 : 10 + SEVERITY_RANK[record.finding.severity]
      if (worth < lowest) {
        found = record
        lowest = worth
        if (worth === 0) break
      }
    }
    return found
  }
}

function asList(transition: Transition | null): readonly Transition[] {
  return transition === null ? NOTHING : [transition]
}
