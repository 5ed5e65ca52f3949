/** The series of a device: the numeric readings of a GPU or of the host, in the units of a recording. */

import type { Scale } from '../../core/fields/field.ts'
import { HOST_SERIES, type SeriesField } from '../../core/kinds.ts'
import type { Reading } from '../../core/model.ts'
import { fromColumn, GPU_COLUMNS, GPU_FIELDS, HOST_COLUMNS, toColumn } from '../../core/record.ts'

export interface Series {
  readonly field: SeriesField
  readonly column: string
  readonly scale: Scale
}

export interface SeriesTable {
  readonly all: readonly Series[]
  /** By column in a recording. */
  readonly byColumn: ReadonlyMap<string, number>
  readonly byField: ReadonlyMap<string, number>
}

function tableOf(all: readonly Series[]): SeriesTable {
  return {
    all,
    byColumn: new Map(all.map(({ column }, index) => [column, index])),
    byField: new Map(all.map(({ field }, index) => [field, index])),
  }
}

const GPU_SERIES = tableOf(GPU_COLUMNS)
const HOST_TABLE = tableOf(HOST_COLUMNS)

/** `host`, or `host-simulated` beside real ones. */
export function hostDevice(provenance: string): string {
  return provenance === 'live' ? HOST_SERIES : `${HOST_SERIES}-${provenance}`
}

export function isHost(device: string): boolean {
  return device === HOST_SERIES || device.startsWith(`${HOST_SERIES}-`)
}

export function seriesOf(device: string): SeriesTable {
  return isHost(device) ? HOST_TABLE : GPU_SERIES
}

/** The most numeric readings that a device has. */
export const MOST_SERIES = Math.max(GPU_FIELDS.length, HOST_COLUMNS.length)

/** Far beyond any reading, and small enough for sums. */
const LARGEST_READING = 1e30

/** In the units of a recording, by position in the table; NaN where there is no reading, or an impossible one. */
export function columnValues(table: SeriesTable, sample: object, values: Float64Array): void {
  const readings = sample as Readonly<Record<string, Reading>>
  table.all.forEach(({ field, scale }, index) => {
    const value = readings[field] ?? null
    values[index] = value === null || !(Math.abs(value) <= LARGEST_READING) ? Number.NaN : toColumn(value, scale)
  })
}

export function inBaseUnit({ scale }: Series, value: number): number {
  return fromColumn(value, scale)
}
