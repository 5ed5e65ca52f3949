/** `gpuwarden detect --csv FILE --time COL --value COL --scores`: one sudden-change score per row of any CSV. */
import { type SeriesPoint, scoreSeries } from '../core/memory/record-ratio.ts'
import { csvCell } from '../core/recording/csv.ts'
import { readColumn } from './csv-column.ts'

export interface CsvScores {
  /** As it stands in the file. */
  readonly times: readonly string[]
  readonly scores: readonly number[]
  readonly withoutValue: number
  /** Rows whose time could not be read; each is taken to follow the row before. */
  readonly withoutTime: number
}

export async function scoreCsv(path: string, timeColumn: string, valueColumn: string): Promise<CsvScores> {
  const times: string[] = []
  const points: SeriesPoint[] = []
  let withoutValue = 0
  let withoutTime = 0
  let at = 0
  for await (const row of readColumn(path, timeColumn, valueColumn)) {
    if (row.at === null) withoutTime++
    if (row.value === null) withoutValue++
    at = row.at ?? at
    times.push(row.time)
    points.push({ at, value: row.value })
  }
  return { times, scores: scoreSeries(points), withoutValue, withoutTime }
}

export function scoresAsCsv(timeColumn: string, { times, scores }: CsvScores): string {
  const lines = [`${csvCell(timeColumn)},score`]
  for (let row = 0; row < times.length; row++) lines.push(`${csvCell(times[row] ?? '')},${shortNumber(scores[row] ?? 0)}`)
  return `${lines.join('\n')}\n`
}

export function scoresAsNdjson(timeColumn: string, { times, scores }: CsvScores): string {
  return times.map((time, row) => `${JSON.stringify({ [timeColumn]: time, score: shortNumber(scores[row] ?? 0) })}\n`).join('')
}

function shortNumber(score: number): number {
  return Math.round(score * 1e6) / 1e6
}
