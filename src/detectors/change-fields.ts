/** The readings of a GPU that are watched for sudden changes, and the finding about one. */
import { formatDuration, formatPercent, formatWatts, formatWhole } from '../core/format.ts'
import type { GpuSample, Reading, Severity } from '../core/model.ts'
import type { FindingDraft } from './finding.ts'
import { evidenceNumber } from './words.ts'

export interface ChangeField {
  readonly name: string
  readonly title: string
  /** Smaller changes are normal. */
  readonly least: number
  read(sample: GpuSample): Reading
  words(value: number): string
}

export const CHANGE_FIELDS: readonly ChangeField[] = [
  {
    name: 'memory',
    title: 'memory in use',
    least: 0.02,
    read: ({ memoryUsedBytes: used, memoryTotalBytes: total }) => (used === null || total === null || total <= 0 ? null : used / total),
    words: formatPercent,
  },
  { name: 'utilization', title: 'utilization', least: 0.2, read: (sample) => sample.utilizationRatio, words: formatPercent },
  {
    name: 'temperature',
    title: 'temperature',
    least: 6,
    read: (sample) => sample.temperatureCelsius,
    words: (value) => formatWhole(value, '°C'),
  },
  { name: 'power', title: 'power draw', least: 60, read: (sample) => sample.powerWatts, words: formatWatts },
]

/** A reading that left its level. */
export interface Abnormal {
  /** Level before the change: frozen, so that the return to it can be seen. */
  readonly reference: number
  readonly size: number
  readonly since: number
  /** The new value, and log2 of how many times the record this change is. */
  readonly value: number
  readonly stated: number
  readonly changedAt: number
  /** What explains the change, or why it does not count; null: nothing. */
  readonly excuse: string | null
  readonly processesChanged: boolean
  /** Samples since then, and their sum: the newest window is not full yet. */
  samples: number
  sum: number
  warned: boolean
}

/** `stayed`: how long the reading has stayed away, when that is what makes it a warning. */
export function changeDraft(label: string, field: ChangeField, one: Abnormal, severity: Severity, stayed: number | null): FindingDraft {
  const times = 2 ** one.stated
  const rest = one.excuse !== null ? `; ${one.excuse}` : stayed !== null ? `, and has stayed there for ${formatDuration(stayed)}` : ''
  return {
    severity,
    since: one.since,
    message:
      `GPU ${label}: ${field.title} jumped from ${field.words(one.reference)} to ${field.words(one.value)}, ` +
      `${times.toFixed(1)} times the largest change so far${rest}.`,
    evidence: {
      reading: field.name,
      before: evidenceNumber(one.reference),
      now: evidenceNumber(one.value),
      timesRecord: evidenceNumber(times),
      processesChanged: one.processesChanged,
      stayedSeconds: stayed === null ? null : Math.round(stayed / 1000),
    },
    confidence: Math.min(0.95, (severity === 'warning' ? 0.4 : 0.3) + 0.15 * one.stated),
    advice: ['Check what started or stopped at that moment.'],
  }
}
