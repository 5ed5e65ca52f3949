/** One instance of every detector. Real and simulated inputs have a set each, so that a real run is never judged by simulated GPUs. */
import type { Detector, DetectorInput, DetectorKind } from '../core/detector-contract.ts'
import type { Finding } from '../core/model.ts'

interface Slot {
  readonly kind: DetectorKind
  readonly options: unknown
  /** null: it failed and is off. */
  detector: Detector | null
}

export type DetectorStates = Readonly<Record<string, unknown>>

/** Runs that have not ended and for which there is no room. */
export interface Unfollowed {
  readonly runs: readonly string[]
  /** How many, of each detector that follows runs. */
  readonly byDetector: Readonly<Record<string, number>>
}

export class DetectorSet {
  readonly #slots: readonly Slot[]
  readonly #slotsOf: Readonly<Record<DetectorInput['type'], readonly Slot[]>>

  readonly #maxRuns: number | undefined

  /** `options`: by detector name; override its defaults. */
  constructor(kinds: readonly DetectorKind[], options: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {}, maxRuns?: number) {
    this.#maxRuns = maxRuns
    this.#slots = kinds.map((kind) => {
      const chosen = { ...(kind.defaults as object), ...options[kind.name] }
      return { kind, options: chosen, detector: kind.create(chosen, maxRuns) }
    })
    const of = (type: DetectorInput['type']) => this.#slots.filter(({ kind }) => kind.inputs.includes(type))
    this.#slotsOf = {
      ...{ device: of('device'), gpu: of('gpu'), host: of('host'), event: of('event') },
      ...{ step: of('step'), run: of('run'), health: of('health'), finding: of('finding') },
    }
  }

  /** A detector that throws is switched off, and `fail` called. */
  show(input: DetectorInput, take: (finding: Finding) => void, fail: (detector: string, error: unknown) => void): void {
    for (const slot of this.#slotsOf[input.type]) {
      // A detector does not see its own findings.
      if (slot.detector === null || (input.type === 'finding' && slot.kind.name === input.finding.detector)) continue
      try {
        const findings = slot.detector.accept(input)
        if (findings.length > 0) for (const finding of findings) take(finding)
      } catch (error) {
        slot.detector = null
        fail(slot.kind.name, error)
      }
    }
  }

  /** Runs without room, of each detector that follows runs. */
  *unfollowed(): Generator<[detector: string, runs: readonly string[]]> {
    for (const { kind, detector } of this.#slots) {
      const missed = detector?.unfollowed?.()
      if (missed !== undefined) yield [kind.name, [...missed]]
    }
  }

  snapshot(): DetectorStates {
    const states: Record<string, unknown> = {}
    for (const { kind, detector } of this.#slots) if (detector) states[kind.name] = detector.snapshot()
    return states
  }

  /** Names of the detectors that have their state back; `fail` for each that could not use it. */
  restore(states: DetectorStates, fail: (detector: string, error: unknown) => void): ReadonlySet<string> {
    const restored = new Set<string>()
    for (const slot of this.#slots) {
      const { name } = slot.kind
      if (states[name] === undefined || slot.detector === null) continue
      try {
        slot.detector.restore(states[name])
        restored.add(name)
      } catch (error) {
        slot.detector = slot.kind.create(slot.options, this.#maxRuns)
        fail(name, error)
      }
    }
    return restored
  }
}

export function unfollowedBy(sets: readonly DetectorSet[]): Unfollowed {
  const runs = new Set<string>()
  const byDetector: Record<string, number> = {}
  for (const set of sets)
    for (const [name, missed] of set.unfollowed()) {
      byDetector[name] = (byDetector[name] ?? 0) + missed.length
      for (const id of missed) runs.add(id)
    }
  return { runs: [...runs], byDetector }
}
