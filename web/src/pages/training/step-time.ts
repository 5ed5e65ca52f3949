/** The step time and what it was spent on, as layers. */
import { PHASE } from '../../../../src/core/curve-fields.ts'
import type { Reading } from '../../../../src/core/model.ts'
import { GPU_CLOCK, NOT_ATTRIBUTED, placeOf } from '../../../../src/core/step-phases.ts'
import { columnOf, namesOf, type RunCurve } from './curve.ts'

export interface TimeLayer {
  readonly label: string
  readonly values: readonly Reading[]
}

/** Those there are colors for, beside the rest. */
const MOST_PHASES = 7

export interface PhaseLayers {
  readonly layers: readonly TimeLayer[]
  readonly isByGpu: boolean
}

/** Phases as they were sent, by one clock, and the rest of the step. Null if the run reports no phases. */
export function phaseLayers(curve: RunCurve): PhaseLayers | null {
  const sent = namesOf(curve, PHASE)
  if (sent.length === 0) return null
  // Not every fast step is timed by the GPU; where most are not, the host's clock tells more.
  const byGpu = sent.filter((name) => name.endsWith(GPU_CLOCK))
  const timed = curve.at.filter((_, index) => byGpu.some((name) => finite(columnOf(curve, PHASE + name)?.[index]) !== null)).length
  const isByGpu = timed * 2 > curve.at.length
  const names = sent.filter((name) => name.endsWith(GPU_CLOCK) === isByGpu).sort((a, b) => placeOf(plain(a)) - placeOf(plain(b)))
  const columns = names.map((name) => columnOf(curve, PHASE + name) ?? [])
  const whole = columnOf(curve, 'stepSeconds') ?? []
  const isTold = curve.at.map((_, index) => columns.some((column) => finite(column[index]) !== null))
  const layers = names.map((name, position) => ({
    label: plain(name),
    values: curve.at.map((_, index) => (isTold[index] ? (finite(columns[position]?.[index]) ?? 0) : null)),
  }))
  const sums = new Map(layers.map((layer) => [layer, layer.values.reduce<number>((sum, value) => sum + (value ?? 0), 0)]))
  const largest = [...layers].sort((a, b) => (sums.get(b) ?? 0) - (sums.get(a) ?? 0)).slice(0, MOST_PHASES)
  const shown = layers.filter((layer) => largest.includes(layer))
  const rest = curve.at.map((_, index) => {
    if (!isTold[index]) return null
    const sum = shown.reduce((total, { values }) => total + (values[index] ?? 0), 0)
    const all = finite(whole[index]) ?? layers.reduce((total, { values }) => total + (values[index] ?? 0), 0)
    return Math.max(0, all - sum)
  })
  const isAll = !rest.some((value) => (value ?? 0) > 0)
  const label = shown.length < layers.length ? `other and ${NOT_ATTRIBUTED}` : NOT_ATTRIBUTED
  return { layers: isAll ? shown : [...shown, { label, values: rest }], isByGpu }
}

function plain(name: string): string {
  return name.replace(GPU_CLOCK, '')
}

function finite(value: Reading | undefined): Reading {
  return value === undefined || value === null || !Number.isFinite(value) ? null : value
}
