/** Closed periods as Parquet, which Python, DuckDB and Polars read without us. Least and most exact, the mean in single precision. */
import { gunzipSync, gzipSync } from 'node:zlib'
import { parquetMetadata, parquetRead } from 'hyparquet'
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

/** Throws when the file is damaged. `series`: positions in the table of the device. */
export async function readParquet(
  bytes: Buffer,
  device: string,
  series: readonly number[],
  take: (at: number, series: number, summary: Summary) => void,
): Promise<void> {
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer
  const metadata = parquetMetadata(file)
  const present = new Set(metadata.schema.map(({ name }) => name))
  const table = seriesOf(device)
  const wanted = series.flatMap((one) => {
    const column = table.all[one]?.column
    return column !== undefined && present.has(`${column}_mean`) ? [{ one, column }] : []
  })
  const found = new Map<string, ArrayLike<unknown>>()
  const names = wanted
    .flatMap(({ column }) => ['_min', '_mean', '_max', '_count'].map((part) => column + part))
    .filter((name) => present.has(name))
  await parquetRead({
    file,
    metadata,
    columns: ['time', 'samples', ...names],
    compressors: { GZIP: (input) => gunzipSync(input) },
    parsers: { timestampFromMilliseconds: Number },
    onChunk: ({ columnName, columnData }) => found.set(columnName, joined(found.get(columnName), columnData)),
  })
  const times = found.get('time') ?? []
  const samples = found.get('samples') ?? []
  for (const { one, column } of wanted) {
    const [mins, means, maxs] = ['_min', '_mean', '_max'].map((part) => found.get(column + part) ?? [])
    const counts = found.get(`${column}_count`) ?? samples
    if (!mins || !means || !maxs) continue
    for (let index = 0; index < times.length; index++) {
      const mean = means[index]
      const count = counts[index] as number
      if (typeof mean !== 'number' || !(count > 0)) continue
      take(times[index] as number, one, { count, sum: mean * count, min: mins[index] as number, max: maxs[index] as number })
    }
  }
}

function joined(before: ArrayLike<unknown> | undefined, next: ArrayLike<unknown>): ArrayLike<unknown> {
  return before === undefined ? next : [...Array.from(before), ...Array.from(next)]
}
