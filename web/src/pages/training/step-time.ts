/** The step time and what it was spent on, as layers. */
import { PHASE } from '../../../../src/core/curve-fields.ts'
import type { Reading } from '../../../../src/core/model.ts'
import { columnOf, namesOf, type RunCurve } from './curve.ts'

export interface TimeLayer {
  readonly label: string
  readonly values: readonly Reading[]
}

const MOST_PHASES = 7

/** Phases as they were sent, and the rest of the step. Null if the run reports no phases. */
export function phaseLayers(curve: RunCurve): readonly TimeLayer[] | null {
  const names = namesOf(curve, PHASE)
  if (names.length === 0) return null
  const columns = names.map((name) => columnOf(curve, PHASE + name) ?? [])
  const whole = columnOf(curve, 'stepSeconds') ?? []
  const isTold = curve.at.map((_, index) => columns.some((column) => finite(column[index]) !== null))
  const layers = names.map((label, position) => ({
    label,
    values: curve.at.map((_, index) => (isTold[index] ? (finite(columns[position]?.[index]) ?? 0) : null)),
  }))
  const shown = layers.slice(0, MOST_PHASES)
  const rest = curve.at.map((_, index) => {
    if (!isTold[index]) return null
    const sum = shown.reduce((total, { values }) => total + (values[index] ?? 0), 0)
    const all = finite(whole[index]) ?? layers.reduce((total, { values }) => total + (values[index] ?? 0), 0)
    return Math.max(0, all - sum)
  })
  return rest.some((value) => (value ?? 0) > 0) ? [...shown, { label: 'rest', values: rest }] : shown
}

function finite(value: Reading | undefined): Reading {
  return value === undefined || value === null || !Number.isFinite(value) ? null : value
}
