/** The course of one rank of a run: columns over steps and time, from the agent's memory and from the stream. */
import { CURVE_FIELDS, CUSTOM, PHASE } from '../../../../src/core/curve-fields.ts'
import { numberOf } from '../../../../src/core/json-text.ts'
import type { Reading, TrainingStep } from '../../../../src/core/model.ts'
import type { StepsAnswer } from '../../answers.ts'

export interface RunCurve {
  readonly steps: readonly number[]
  readonly at: readonly number[]
  readonly columns: ReadonlyMap<string, readonly Reading[]>
  /** 1: every step; n: every n-th. */
  readonly stride: number
}

export const EMPTY_CURVE: RunCurve = { steps: [], at: [], columns: new Map(), stride: 1 }

export function curveOfAnswer({ fields, data, stride }: StepsAnswer): RunCurve {
  const [steps = [], at = [], ...rest] = data
  return {
    steps: steps.map((value) => numberOf(value) ?? 0),
    at: at.map((value) => numberOf(value) ?? 0),
    columns: new Map(fields.map((field, index) => [field, (rest[index] ?? []).map(numberOf)])),
    stride,
  }
}

export function curveOfSteps(steps: readonly TrainingStep[]): RunCurve {
  return withSteps(EMPTY_CURVE, steps)
}

/** The same curve with what came after its end; steps that it holds already are not taken twice. */
export function withSteps(curve: RunCurve, later: readonly TrainingStep[]): RunCurve {
  const last = curve.at.at(-1) ?? Number.NEGATIVE_INFINITY
  const news = later.filter(({ at }) => at > last)
  if (news.length === 0) return curve
  const columns = new Map<string, Reading[]>()
  for (const [name, values] of curve.columns) columns.set(name, values.slice())
  news.forEach((step, position) => {
    const length = curve.at.length + position
    for (const [name, value] of figuresOf(step)) {
      const column = columns.get(name) ?? []
      while (column.length < length) column.push(null)
      column.push(value)
      columns.set(name, column)
    }
    for (const column of columns.values()) while (column.length <= length) column.push(null)
  })
  return {
    steps: [...curve.steps, ...news.map(({ step }) => step)],
    at: [...curve.at, ...news.map(({ at }) => at)],
    columns,
    stride: curve.stride,
  }
}

/** Over steps: a run that went back to a checkpoint did some of them twice, and the later try counts. */
export function byStep(curve: RunCurve): RunCurve {
  if (curve.steps.every((step, index) => index === 0 || step > (curve.steps[index - 1] ?? 0))) return curve
  const latest = new Map<number, number>()
  curve.steps.forEach((step, index) => {
    latest.set(step, index)
  })
  const order = [...latest].sort(([a], [b]) => a - b).map(([, index]) => index)
  const picked = <Value>(column: readonly Value[], missing: Value) => order.map((index) => column[index] ?? missing)
  return {
    steps: picked(curve.steps, 0),
    at: picked(curve.at, 0),
    columns: new Map(Array.from(curve.columns, ([name, values]) => [name, picked<Reading>(values, null)])),
    stride: curve.stride,
  }
}

/** Null where the curve has no such figure at all. */
export function columnOf(curve: RunCurve, field: string): readonly Reading[] | null {
  const values = curve.columns.get(field)
  return values?.some((value) => value !== null) ? values : null
}

/** Names of phases or custom figures that the curve has, without their prefix. */
export function namesOf(curve: RunCurve, prefix: typeof PHASE | typeof CUSTOM): readonly string[] {
  return [...curve.columns.keys()]
    .filter((name) => name.startsWith(prefix) && columnOf(curve, name))
    .map((name) => name.slice(prefix.length))
}

function figuresOf(step: TrainingStep): (readonly [string, Reading])[] {
  const named = (prefix: string, values: Readonly<Record<string, number>> | null) =>
    Object.entries(values ?? {}).map(([name, value]) => [prefix + name, numberOf(value)] as const)
  return [
    ...CURVE_FIELDS.flatMap((field) => (step[field] === null ? [] : [[field, step[field]] as const])),
    ...named(PHASE, step.phaseSeconds),
    ...named(CUSTOM, step.custom),
  ]
}
