/** Records as CSV, JSON, Parquet or a short table; in the units and under the names that logs and records on disk have. */
import { type HistoryAnswer, HOST_SERIES, type SeriesField } from '../core/kinds.ts'
import type { Reading } from '../core/model.ts'
import { GPU_COLUMNS, HOST_COLUMNS, toColumn } from '../core/record.ts'
import { alignColumns } from './table.ts'

export interface HistoryRow {
  readonly at: number
  /** Least, mean and most of each field, one after the other. */
  readonly values: readonly Reading[]
}

const TABLES = { gpu: GPU_COLUMNS, host: HOST_COLUMNS }

/** By the name in the API or in a log. */
export function columnFor(name: string, gpu: string | null): { readonly field: SeriesField; readonly column: string } | null {
  return tableOf(gpu).find(({ field, column }) => field === name || column === name) ?? null
}

export function allSeries(gpu: string | null): readonly SeriesField[] {
  return tableOf(gpu).map(({ field }) => field)
}

export function headOf(fields: readonly SeriesField[], gpu: string | null): readonly string[] {
  return fields.flatMap((field) => {
    const column = columnFor(field, gpu)?.column ?? field
    return [`${column}_min`, `${column}_mean`, `${column}_max`]
  })
}

/** Moments without any reading are left out. */
export function rowsOf(
  { data: [times = [], ...means], min, max }: HistoryAnswer,
  fields: readonly SeriesField[],
  gpu: string | null,
): HistoryRow[] {
  const scales = fields.map((field) => tableOf(gpu).find((one) => one.field === field)?.scale ?? 'same')
  const inColumn = (value: Reading | undefined, position: number) =>
    value === null || value === undefined ? null : toColumn(value, scales[position] ?? 'same')
  return times.flatMap((at, index) => {
    const values = fields.flatMap((_, position) => {
      const mean = means[position]?.[index]
      return [min?.[position]?.[index] ?? mean, mean, max?.[position]?.[index] ?? mean].map((value) => inColumn(value, position))
    })
    return at === null || values.every((value) => value === null) ? [] : [{ at, values }]
  })
}

export function csvText(head: readonly string[], rows: readonly HistoryRow[]): string {
  const lines = rows.map(({ at, values }) => [new Date(at).toISOString(), ...values.map((value) => value ?? '')].join(','))
  return `${['time', ...head].join(',')}\n${lines.map((line) => `${line}\n`).join('')}`
}

export function jsonText(gpu: string | null, head: readonly string[], rows: readonly HistoryRow[]): string {
  const objects = rows.map(({ at, values }) =>
    JSON.stringify({ time: new Date(at).toISOString(), ...Object.fromEntries(head.map((name, index) => [name, values[index] ?? null])) }),
  )
  return `{"gpu":${JSON.stringify(gpu)},"records":[\n${objects.join(',\n')}\n]}\n`
}

export async function parquetBytes(head: readonly string[], rows: readonly HistoryRow[]): Promise<Buffer> {
  const { parquetWriteBuffer } = await import('hyparquet-writer')
  const columnData = [
    { name: 'time', type: 'TIMESTAMP' as const, nullable: false, data: rows.map(({ at }) => new Date(at)) },
    ...head.map((name, index) => ({ name, type: 'DOUBLE' as const, data: rows.map(({ values }) => values[index] ?? null) })),
  ]
  return Buffer.from(parquetWriteBuffer({ columnData, rowGroupSize: 100_000 }))
}

export function tableText(head: readonly string[], rows: readonly HistoryRow[]): string {
  const text = (value: Reading) => (value === null ? '–' : String(Number(value.toPrecision(6))))
  const lines = head.flatMap((name, index) => {
    if (!name.endsWith('_mean')) return []
    const known = (offset: number) => rows.flatMap(({ values }) => values[index + offset] ?? [])
    const [mins, means, maxs] = [known(-1), known(0), known(1)]
    const least = mins.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY)
    const most = maxs.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY)
    const mean = means.reduce((sum, value) => sum + value, 0) / means.length
    const figures = means.length === 0 ? [null, null, null] : [least, mean, most]
    return [[name.slice(0, -'_mean'.length), ...figures.map(text), String(means.length)]]
  })
  const span = `${new Date(rows[0]?.at ?? 0).toISOString()} to ${new Date(rows.at(-1)?.at ?? 0).toISOString()}`
  return `${span}\n\n${alignColumns([['reading', 'least', 'mean', 'most', 'records'], ...lines]).join('\n')}\n`
}

function tableOf(gpu: string | null) {
  return gpu?.startsWith(HOST_SERIES) ? TABLES.host : TABLES.gpu
}
