import { CUSTOM, PHASE } from '../../../../src/core/curve-fields.ts'
import type { Reading } from '../../../../src/core/model.ts'
import { formatBytes, formatFigure, formatSeconds } from '../../words.ts'
import { columnOf, type RunCurve } from './curve.ts'

const NAMES: Readonly<Record<string, string>> = {
  loss: 'Loss',
  learningRate: 'Learning rate',
  gradientNorm: 'Gradient norm',
  throughputPerSecond: 'Samples per second',
  stepSeconds: 'Step time',
  epoch: 'Epoch',
  memoryAllocatedBytes: 'Allocated memory',
  memoryReservedBytes: 'Reserved memory',
  memoryActiveBytes: 'Active memory',
  memoryInactiveSplitBytes: 'Fragmented memory',
  memoryPeakAllocatedBytes: 'Peak of allocated memory',
  memoryPeakReservedBytes: 'Peak of reserved memory',
  allocRetries: 'Allocation retries',
  oomCount: 'Out-of-memory errors',
}

export function metricName(field: string): string {
  if (field.startsWith(PHASE)) return `Phase ${field.slice(PHASE.length)}`
  return field.startsWith(CUSTOM) ? field.slice(CUSTOM.length) : (NAMES[field] ?? field)
}

export function metricFormat(field: string): (value: Reading) => string {
  if (field.endsWith('Bytes')) return formatBytes
  return field === 'stepSeconds' || field.startsWith(PHASE) ? formatSeconds : formatFigure
}

/** Those that at least one run reports: the usual ones first, then by name. */
export function metricsOf(curves: readonly RunCurve[]): readonly string[] {
  const told = new Set(curves.flatMap((curve) => [...curve.columns.keys()].filter((field) => columnOf(curve, field))))
  const usual = Object.keys(NAMES).filter((field) => told.has(field))
  return [...usual, ...[...told].filter((field) => !(field in NAMES)).sort()]
}
