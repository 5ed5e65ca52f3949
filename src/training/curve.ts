/**
 * The curve of one rank in bounded memory: every step at first, then every second, fourth … of them. Values that are not finite stay,
 * and a figure that a kept step lacks is taken from the next step that has it, so that what is reported rarely is not thinned away.
 */
import { CURVE_FIELDS, CUSTOM, PHASE } from '../core/curve-fields.ts'
import type { TrainingStep } from '../core/model.ts'
import { CurveColumn } from './curve-column.ts'

export { CURVE_FIELDS, CUSTOM, PHASE }

/** By the clocks of host and GPU. */
export const MOST_PHASES = 24
export const MOST_CUSTOM = 64

type Columns = Map<string, CurveColumn>
const HEAD = ['step', 'at'] as const

export class Curve {
  #most: number
  #length = 0
  #stride = 1
  #seen = 0
  readonly #head = { step: new CurveColumn(), at: new CurveColumn() }
  readonly #fields: Columns = new Map()
  readonly #phases: Columns = new Map()
  readonly #custom: Columns = new Map()

  constructor(mostPoints: number) {
    this.#most = mostPoints
  }

  add(step: TrainingStep): void {
    const isKept = this.#seen++ % this.#stride === 0 || isNotFinite(step.loss) || isNotFinite(step.gradientNorm)
    const index = isKept ? this.#length : this.#length - 1
    if (isKept) {
      this.#head.step.fill(index, step.step)
      this.#head.at.fill(index, step.at)
      this.#length++
    }
    for (const field of CURVE_FIELDS) {
      const value = step[field]
      if (value !== null) columnOf(this.#fields, field, CURVE_FIELDS.length)?.fill(index, value)
    }
    fillAll(this.#phases, step.phaseSeconds, index, MOST_PHASES)
    fillAll(this.#custom, step.custom, index, MOST_CUSTOM)
    if (this.#length >= this.#most) this.#thin()
  }

  /** How many points may be kept from now on. */
  limit(mostPoints: number): void {
    this.#most = mostPoints
    while (this.#length >= mostPoints) this.#thin()
  }

  /** Columns: step, at, and the given fields, in order of time; a field that no step had is null throughout. */
  columns(fields: readonly string[], fromStep = 0, toStep = Number.POSITIVE_INFINITY): (number | null)[][] {
    const { step, at } = this.#head
    const points: number[] = []
    let isInOrder = true
    for (let index = 0; index < this.#length; index++) {
      const value = step.get(index) ?? 0
      if (value < fromStep || value > toStep) continue
      isInOrder &&= points.length === 0 || (at.get(points.at(-1) ?? 0) ?? 0) <= (at.get(index) ?? 0)
      points.push(index)
    }
    // Delayed steps came after younger ones.
    if (!isInOrder) points.sort((a, b) => (at.get(a) ?? 0) - (at.get(b) ?? 0))
    const wanted = [step, at, ...fields.map((field) => this.#column(field))]
    return wanted.map((column) => points.map((index) => column?.get(index) ?? null))
  }

  get stride(): number {
    return this.#stride
  }

  get bytes(): number {
    let bytes = this.#head.step.bytes + this.#head.at.bytes
    for (const columns of [this.#fields, this.#phases, this.#custom]) for (const column of columns.values()) bytes += column.bytes
    return bytes
  }

  toJSON(): unknown {
    const saved = (columns: Columns) => Object.fromEntries(Array.from(columns, ([name, column]) => [name, column.save(this.#length)]))
    return {
      stride: this.#stride,
      seen: this.#seen,
      length: this.#length,
      head: { step: this.#head.step.save(this.#length), at: this.#head.at.save(this.#length) },
      fields: saved(this.#fields),
      phases: saved(this.#phases),
      custom: saved(this.#custom),
    }
  }

  /** Starts over when it cannot be read. */
  static from(saved: unknown, mostPoints: number): Curve {
    const curve = new Curve(mostPoints)
    const { stride, seen, length, head, fields, phases, custom } = (saved ?? {}) as Record<string, unknown>
    if (!isCount(stride) || stride < 1 || !isCount(seen) || !isCount(length)) return curve
    const columns = HEAD.map((name) => CurveColumn.from((head as Record<string, unknown> | undefined)?.[name], length))
    if (columns.includes(null)) return curve
    HEAD.forEach((name, index) => {
      const column = columns[index]
      if (column) curve.#head[name] = column
    })
    restore(curve.#fields, fields, length, CURVE_FIELDS)
    restore(curve.#phases, phases, length)
    restore(curve.#custom, custom, length)
    curve.#stride = stride
    curve.#seen = seen
    curve.#length = length
    curve.limit(mostPoints)
    return curve
  }

  #column(field: string): CurveColumn | undefined {
    if (field.startsWith(PHASE)) return this.#phases.get(field.slice(PHASE.length))
    if (field.startsWith(CUSTOM)) return this.#custom.get(field.slice(CUSTOM.length))
    return this.#fields.get(field)
  }

  #thin(): void {
    this.#stride *= 2
    const loss = this.#fields.get('loss')
    const gradient = this.#fields.get('gradientNorm')
    const isOdd = (index: number) => isNotFinite(loss?.get(index) ?? null) || isNotFinite(gradient?.get(index) ?? null)
    let odd = 0
    for (let index = 0; index < this.#length; index++) if (isOdd(index)) odd++
    const keepsOdd = odd < this.#most / 4
    const kept: number[] = []
    for (let index = 0; index < this.#length; index++) if (index % 2 === 0 || (keepsOdd && isOdd(index))) kept.push(index)
    for (const column of [this.#head.step, this.#head.at]) column.keep(kept, this.#length)
    for (const columns of [this.#fields, this.#phases, this.#custom]) for (const column of columns.values()) column.keep(kept, this.#length)
    this.#length = kept.length
  }
}

function columnOf(columns: Columns, name: string, most: number): CurveColumn | null {
  const known = columns.get(name)
  if (known) return known
  if (columns.size >= most) return null
  const column = new CurveColumn()
  columns.set(name, column)
  return column
}

function fillAll(columns: Columns, values: Readonly<Record<string, number>> | null, index: number, most: number): void {
  for (const name in values) {
    const value = values[name]
    if (value !== undefined) columnOf(columns, name, most)?.fill(index, value)
  }
}

function restore(columns: Columns, saved: unknown, length: number, names: readonly string[] | null = null): void {
  for (const [name, value] of Object.entries((saved ?? {}) as object)) {
    const column = names === null || names.includes(name) ? CurveColumn.from(value, length) : null
    if (column) columns.set(name, column)
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function isNotFinite(value: number | null): boolean {
  return value !== null && !Number.isFinite(value)
}
