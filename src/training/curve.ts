/** The course of a run in bounded memory: every step at first, then every second, fourth … of them; what is not finite stays. */
import type { TrainingStep } from '../model.ts'
import { numberOf } from './json-text.ts'

export const CURVE_FIELDS = [
  'epoch',
  'loss',
  'learningRate',
  'gradientNorm',
  'throughputPerSecond',
  'stepSeconds',
  'memoryAllocatedBytes',
  'memoryReservedBytes',
] as const satisfies readonly (keyof TrainingStep)[]

export type CurveField = (typeof CURVE_FIELDS)[number]

/** step, at, then the fields in their order. */
export type CurvePoint = readonly (number | null)[]

const MOST_POINTS = 1024

export class Curve {
  #points: CurvePoint[] = []
  #stride = 1
  #seen = 0

  add(step: TrainingStep): void {
    const isOdd = isNotFinite(step.loss) || isNotFinite(step.gradientNorm)
    if (this.#seen++ % this.#stride !== 0 && !isOdd) return
    this.#points.push([step.step, step.at, ...CURVE_FIELDS.map((field) => step[field])])
    if (this.#points.length >= MOST_POINTS) this.#thin()
  }

  /** Columns: step, at, and the fields asked for. */
  columns(fields: readonly CurveField[], fromStep: number): (number | null)[][] {
    const wanted = [0, 1, ...fields.map((field) => CURVE_FIELDS.indexOf(field) + 2)]
    const points = this.#points.filter((point) => (point[0] ?? 0) >= fromStep)
    return wanted.map((index) => points.map((point) => point[index] ?? null))
  }

  get stride(): number {
    return this.#stride
  }

  toJSON(): unknown {
    return { stride: this.#stride, seen: this.#seen, points: this.#points }
  }

  static from(saved: unknown): Curve {
    const curve = new Curve()
    const { stride, seen, points } = (saved ?? {}) as { stride?: unknown; seen?: unknown; points?: unknown }
    if (typeof stride !== 'number' || typeof seen !== 'number' || !Array.isArray(points)) return curve
    curve.#stride = stride
    curve.#seen = seen
    curve.#points = points.filter(Array.isArray).map((point: unknown[]) => point.map(numberOf))
    return curve
  }

  #thin(): void {
    this.#stride *= 2
    const odd = this.#points.filter(isOddPoint).length
    const keepsOdd = odd < MOST_POINTS / 4
    this.#points = this.#points.filter((point, index) => index % 2 === 0 || (keepsOdd && isOddPoint(point)))
  }
}

const LOSS = CURVE_FIELDS.indexOf('loss') + 2
const GRADIENT = CURVE_FIELDS.indexOf('gradientNorm') + 2

function isOddPoint(point: CurvePoint): boolean {
  return isNotFinite(point[LOSS] ?? null) || isNotFinite(point[GRADIENT] ?? null)
}

function isNotFinite(value: number | null): boolean {
  return value !== null && !Number.isFinite(value)
}
