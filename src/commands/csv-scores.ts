/** `gpuwarden detect --csv FILE --time COL --value COL --scores`: one sudden-change score per row of any CSV. */
import { EXIT, Failure } from '../core/failure.ts'
import { type SeriesPoint, scoreSeries } from '../core/memory/record-ratio.ts'
import { csvCell, parseClock, readCsvRows } from '../core/recording/csv.ts'
import { parseTimestamp } from '../core/recording/recording.ts'

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
  let columns: { time: number; value: number } | null = null
  let withoutValue = 0
  let withoutTime = 0
  let at = 0
  for await (const row of rowsOf(path)) {
    if (columns === null) {
      const names = row.map((name) => name.trim())
      columns = { time: columnOf(names, timeColumn, '--time', path), value: columnOf(names, valueColumn, '--value', path) }
      continue
    }
    const time = (row[columns.time] ?? '').trim()
    const value = numberOf((row[columns.value] ?? '').trim())
    const readAt = timeOf(time)
    if (readAt === null) withoutTime++
    if (value === null) withoutValue++
    at = readAt ?? at
    times.push(time)
    points.push({ at, value })
  }
  if (columns === null)
    throw new Failure(`${path} is empty: expected a header line with the names of the columns`, { exitCode: EXIT.noSource })
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

async function* rowsOf(path: string): AsyncGenerator<string[]> {
  try {
    yield* readCsvRows(path)
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    throw new Failure(`cannot read ${path} (${code ?? message})`, {
      exitCode: EXIT.noSource,
      hint: '--csv takes a CSV file, or a .csv.gz.',
      cause,
    })
  }
}

function columnOf(names: readonly string[], wanted: string, flag: string, path: string): number {
  const exact = names.indexOf(wanted)
  const index = exact >= 0 ? exact : names.findIndex((name) => bare(name) === bare(wanted))
  if (index >= 0) return index
  throw new Failure(`${path} has no column "${wanted}" (${flag}); it has ${names.map((name) => `"${name}"`).join(', ')}`, {
    exitCode: EXIT.usage,
  })
}

/** `memory.used [MiB]` may be asked for as `memory.used`. */
function bare(name: string): string {
  return name
    .replace(/\s*\[[^\]]*\]$/, '')
    .trim()
    .toLowerCase()
}

/** A number, with a unit after it or none: `1234 MiB`, `98 %`, `1e3`. */
function numberOf(cell: string): number | null {
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?:\s*[a-z%°/]+)?$/i.exec(cell)
  const value = match === null ? Number.NaN : Number(match[1])
  return Number.isFinite(value) ? value : null
}

function timeOf(cell: string): number | null {
  const clock = parseClock(cell) ?? parseTimestamp(cell)
  if (clock !== null) return clock
  return cell === '' ? null : parseTimestamp(Number(cell))
}
