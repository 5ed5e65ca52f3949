/** One column of any CSV file with its times. */
import { EXIT, Failure } from '../core/failure.ts'
import { parseClock, readCsvRows } from '../core/recording/csv.ts'
import { parseTimestamp } from '../core/recording/recording.ts'

export interface ColumnRow {
  /** As it stands in the file. */
  readonly time: string
  /** Null where the time cannot be read. */
  readonly at: number | null
  readonly value: number | null
  /** Of the cell, or of the column's name: `MiB` of `memory.used [MiB]`. */
  readonly unit: string | null
}

export async function* readColumn(path: string, timeColumn: string, valueColumn: string): AsyncGenerator<ColumnRow> {
  let columns: { time: number; value: number; unit: string | null } | null = null
  for await (const row of rowsOf(path)) {
    if (columns === null) {
      const names = row.map((name) => name.trim())
      const value = columnOf(names, valueColumn, '--value', path)
      columns = { time: columnOf(names, timeColumn, '--time', path), value, unit: /\[([^\]]*)\]$/.exec(names[value] ?? '')?.[1] ?? null }
      continue
    }
    const time = (row[columns.time] ?? '').trim()
    const { value, unit } = numberOf((row[columns.value] ?? '').trim())
    yield { time, at: timeOf(time), value, unit: unit ?? columns.unit }
  }
  if (columns === null)
    throw new Failure(`${path} is empty: expected a header line with the names of the columns`, { exitCode: EXIT.noSource })
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
function numberOf(cell: string): { value: number | null; unit: string | null } {
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?:\s*([a-z%°/]+))?$/i.exec(cell)
  const value = match === null ? Number.NaN : Number(match[1])
  return { value: Number.isFinite(value) ? value : null, unit: match?.[2] ?? null }
}

function timeOf(cell: string): number | null {
  const clock = parseClock(cell) ?? parseTimestamp(cell)
  if (clock !== null) return clock
  return cell === '' ? null : parseTimestamp(Number(cell))
}
