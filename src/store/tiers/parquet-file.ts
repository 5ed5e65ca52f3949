/** Closed periods as Parquet, which Python, DuckDB and Polars read without us. Least and most exact, the mean in single precision. */
import { gunzipSync, gzipSync } from 'node:zlib'
import { parquetMetadataAsync, parquetRead } from 'hyparquet'
import type { ColumnSource } from 'hyparquet-writer'
import type { Summary } from '../minute-ring.ts'
import { type Rows, samplesIn } from './rows.ts'
import { seriesOf } from './series.ts'

/** Time is what counts when a day is closed, and more than this saves little. */
const GZIP_LEVEL = 4
const LARGEST_ROW_GROUP = 100_000

export async function parquetOf(device: string, rows: Rows): Promise<Buffer> {
  // Only who closes a period writes: the agent need not have it in memory.
  const { parquetWriteBuffer } = await import('hyparquet-writer')
  const bytes = parquetWriteBuffer({
    columnData: columnsOf(device, rows),
    codec: 'GZIP',
    compressors: { GZIP: (input) => gzipSync(input, { level: GZIP_LEVEL }) },
    statistics: false,
    rowGroupSize: LARGEST_ROW_GROUP,
    kvMetadata: [{ key: 'gpuwarden', value: JSON.stringify({ device, stepMs: rows.stepMs }) }],
  })
  return Buffer.from(bytes)
}

function columnsOf(device: string, rows: Rows): ColumnSource[] {
  const all = rows.inOrder()
  const samples = all.map(({ row }) => samplesIn(row))
  const columns: ColumnSource[] = [
    { name: 'time', type: 'TIMESTAMP', nullable: false, data: all.map(({ at }) => new Date(at)) },
    { name: 'device', type: 'STRING', nullable: false, data: all.map(() => device) },
    { name: 'samples', type: 'INT32', nullable: false, data: samples },
  ]
  seriesOf(device).all.forEach(({ column }, series) => {
    const counts = all.map(({ row }) => row.counts[series] ?? 0)
    if (counts.every((count) => count === 0)) return
    const nullable = counts.includes(0)
    const values = (value: (row: (typeof all)[number]['row'], count: number) => number) =>
      all.map(({ row }, index) => {
        const count = counts[index] ?? 0
        return count === 0 ? null : value(row, count)
      })
    columns.push(
      { name: `${column}_min`, type: 'DOUBLE', nullable, data: values((row) => row.mins[series] ?? 0) },
      { name: `${column}_mean`, type: 'FLOAT', nullable, data: values((row, count) => (row.sums[series] ?? 0) / count) },
      { name: `${column}_max`, type: 'DOUBLE', nullable, data: values((row) => row.maxs[series] ?? 0) },
    )
    if (counts.some((count, index) => count !== 0 && count !== samples[index]))
      columns.push({ name: `${column}_count`, type: 'INT32', nullable: false, data: counts })
  })
  return columns.map((column) => ({ ...column, offsetIndex: false }))
}

/** The records of one reading, by index; a null mean: none. */
export interface ColumnRecords {
  readonly times: ArrayLike<number>
  readonly counts: ArrayLike<number>
  readonly mins: ArrayLike<number | null>
  readonly means: ArrayLike<number | null>
  readonly maxs: ArrayLike<number | null>
}

/** Throws when the file is damaged. `series`: positions in the table of the device. */
export async function readParquet(
  bytes: Buffer,
  device: string,
  series: readonly number[],
  take: (series: number, records: ColumnRecords) => void,
): Promise<void> {
  const file = {
    byteLength: bytes.byteLength,
    slice: (from: number, end = bytes.byteLength) =>
      bytes.buffer.slice(bytes.byteOffset + from, bytes.byteOffset + Math.min(end, bytes.byteLength)) as ArrayBuffer,
  }
  const metadata = await parquetMetadataAsync(file)
  const present = new Set(metadata.schema.map(({ name }) => name))
  const table = seriesOf(device)
  const wanted = series.flatMap((one) => {
    const column = table.all[one]?.column
    return column !== undefined && present.has(`${column}_mean`) ? [{ one, column }] : []
  })
  const found = new Map<string, ArrayLike<unknown>>()
  const parts = ['_min', '_mean', '_max', '_count']
  const names = wanted.flatMap(({ column }) => parts.map((part) => column + part)).filter((name) => present.has(name))
  if (names.length === 0) return
  await parquetRead({
    file,
    metadata,
    columns: ['time', 'samples', ...names],
    // Told its size, it needs one piece of memory instead of many.
    compressors: { GZIP: (input, bytes) => gunzipSync(input, { chunkSize: Math.max(64, bytes + 1) }) },
    parsers: { timestampFromMilliseconds: Number },
    onChunk: ({ columnName, columnData }) => found.set(columnName, joined(found.get(columnName), columnData)),
  })
  const column = <T>(name: string): ArrayLike<T> => (found.get(name) ?? []) as ArrayLike<T>
  const times = column<number>('time')
  for (const { one, column: name } of wanted)
    take(one, {
      times,
      counts: column<number>(present.has(`${name}_count`) ? `${name}_count` : 'samples'),
      mins: column(`${name}_min`),
      means: column(`${name}_mean`),
      maxs: column(`${name}_max`),
    })
}

/** One record after the other. */
export function eachRecord({ times, counts, mins, means, maxs }: ColumnRecords, take: (at: number, summary: Summary) => void): void {
  const summary: Summary = { count: 0, sum: 0, min: 0, max: 0 }
  for (let index = 0; index < times.length; index++) {
    const mean = means[index] ?? null
    const count = counts[index] ?? 0
    if (mean === null || !(count > 0)) continue
    summary.count = count
    summary.sum = mean * count
    summary.min = mins[index] ?? mean
    summary.max = maxs[index] ?? mean
    take(times[index] ?? 0, summary)
  }
}

function joined(before: ArrayLike<unknown> | undefined, next: ArrayLike<unknown>): ArrayLike<unknown> {
  return before === undefined ? next : [...Array.from(before), ...Array.from(next)]
}
