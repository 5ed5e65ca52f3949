/** The curves of a run's ranks: the lowest in full, its neighbors coarser, the others coarser still. */
import { numberOf } from '../core/json-text.ts'
import type { TrainingStep } from '../core/model.ts'
import { CURVE_FIELDS, CUSTOM, Curve, MOST_PHASES, PHASE } from './curve.ts'

export const MOST_CURVES = 64
const POINTS_OF_LOWEST = 1024
const POINTS_OF_NEAR = 512
const NEAR = 8
const POINTS_OF_OTHERS = 128

export class RankCurves {
  readonly #curves = new Map<number, Curve>()
  readonly #phases = new Set<string>()
  readonly #custom = new Set<string>()
  #highest = -1

  add(step: TrainingStep): void {
    for (const name in step.phaseSeconds) if (this.#phases.size < MOST_PHASES) this.#phases.add(name)
    for (const name in step.custom) this.#custom.add(name)
    const curve = this.#curves.get(step.rank) ?? this.#begin(step.rank)
    curve?.add(step)
  }

  /** null: this rank has none, because it never sent a step or because there are too many lower ones. */
  of(rank: number): Curve | null {
    return this.#curves.get(rank) ?? null
  }

  get lowest(): number | null {
    return this.#curves.size === 0 ? null : Math.min(...this.#curves.keys())
  }

  /** Ascending. */
  get ranks(): readonly number[] {
    return [...this.#curves.keys()].sort((a, b) => a - b)
  }

  /** Every name that can be asked for. */
  get names(): readonly string[] {
    return [...CURVE_FIELDS, ...Array.from(this.#phases, (name) => PHASE + name), ...Array.from(this.#custom, (name) => CUSTOM + name)]
  }

  get bytes(): number {
    let bytes = 0
    for (const curve of this.#curves.values()) bytes += curve.bytes
    return bytes
  }

  toJSON(): unknown {
    return { phases: [...this.#phases], custom: [...this.#custom], ranks: [...this.#curves] }
  }

  restore(saved: unknown): void {
    const { phases, custom, ranks } = (saved ?? {}) as Record<string, unknown>
    for (const name of listOf(phases)) this.#phases.add(String(name))
    for (const name of listOf(custom)) this.#custom.add(String(name))
    for (const entry of listOf(ranks)) {
      const [rank, curve] = listOf(entry)
      const number = numberOf(rank)
      if (number !== null && this.#curves.size < MOST_CURVES) this.#curves.set(number, Curve.from(curve, POINTS_OF_LOWEST))
    }
    this.#share()
  }

  #begin(rank: number): Curve | null {
    if (this.#curves.size >= MOST_CURVES) {
      if (rank > this.#highest) return null
      this.#curves.delete(this.#highest)
    }
    const curve = new Curve(POINTS_OF_OTHERS)
    this.#curves.set(rank, curve)
    this.#share()
    return curve
  }

  /** Ranks come in any order; the place among them decides how much a curve may hold. */
  #share(): void {
    const { ranks } = this
    this.#highest = ranks.at(-1) ?? -1
    ranks.forEach((rank, place) => {
      this.#curves.get(rank)?.limit(place === 0 ? POINTS_OF_LOWEST : place < NEAR ? POINTS_OF_NEAR : POINTS_OF_OTHERS)
    })
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
