import type { Reading } from '../../../../src/core/model.ts'
import { byStep, columnOf, type RunCurve } from './curve.ts'

export type CompareAxis = 'step' | 'elapsed'

export interface Line {
  readonly x: readonly number[]
  readonly values: readonly Reading[]
}

/** Over steps, or over milliseconds since the run's first step. */
export function lineOf(curve: RunCurve, field: string, axis: CompareAxis): Line {
  const source = axis === 'step' ? byStep(curve) : curve
  const begin = source.at[0] ?? 0
  const x = axis === 'step' ? source.steps : source.at.map((at) => at - begin)
  return { x, values: columnOf(source, field) ?? x.map(() => null) }
}

/** All x of all lines, ascending; a line has null where another one has its point. */
export function aligned(lines: readonly Line[]): { readonly x: readonly number[]; readonly columns: readonly (readonly Reading[])[] } {
  const x = [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b)
  const place = new Map(x.map((value, index) => [value, index]))
  const columns = lines.map((line) => {
    const column = new Array<Reading>(x.length).fill(null)
    line.x.forEach((value, index) => {
      column[place.get(value) ?? 0] = line.values[index] ?? null
    })
    return column
  })
  return { x, columns }
}
