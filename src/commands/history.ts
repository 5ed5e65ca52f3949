import { writeFile } from 'node:fs/promises'
import type { Config } from '../agent/config.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { formatPercent } from '../core/format.ts'
import { HOST_SERIES, type SeriesField } from '../core/kinds.ts'
import { parseTime, TIME_HINT } from '../core/time-expression.ts'
import { allSeries, columnFor, csvText, type HistoryRow, headOf, jsonText, parquetBytes, rowsOf, tableText } from './history-output.ts'
import { type HistorySource, openHistory } from './history-source.ts'
import { endWhenPipeCloses, writeOut } from './output.ts'
import { ProgressLine } from './progress-line.ts'

const DAY_MS = 86_400_000
const USUAL_GPU: readonly SeriesField[] = ['utilizationRatio', 'memoryUsedBytes', 'powerWatts', 'temperatureCelsius']
const USUAL_HOST: readonly SeriesField[] = ['cpuRatio', 'memoryUsedBytes', 'load1', 'diskFreeBytes']
/** One question to an agent, or one read of files. */
const POINTS_AT_ONCE = 5000
const MOST_POINTS = 500_000
/** Unless --step says otherwise: spans up to the first, in steps of the second. */
const USUAL_STEPS: readonly (readonly [number, number])[] = [
  [DAY_MS, 10_000],
  [31 * DAY_MS, 60_000],
  [400 * DAY_MS, 900_000],
  [Number.POSITIVE_INFINITY, 3_600_000],
]

interface Asked {
  readonly gpu: string | null
  readonly fields: readonly SeriesField[]
  readonly from: number
  readonly to: number
  readonly stepMs: number
}

export async function history(config: Config, options: Record<string, unknown>): Promise<number> {
  endWhenPipeCloses()
  const asked = readOptions(options)
  let share = 0
  const bar = new ProgressLine(() => `reading the history: ${formatPercent(share)}`)
  const onProgress = (done: number) => {
    share = done
  }
  try {
    const source = await openHistory(config, { ...asked, onProgress })
    const rows = await readAll(source, asked, onProgress).finally(() => source.close())
    bar.stop()
    if (rows.length === 0)
      throw new Failure(`no records of ${nameOf(asked.gpu)} between ${iso(asked.from)} and ${iso(asked.to)} (${source.place})`, {
        exitCode: EXIT.noSource,
        hint: 'Records are kept from the day on which an agent that keeps them first ran, and for as long as history.keep_days says.',
      })
    await print(rows, asked, options)
  } finally {
    bar.stop()
  }
  return EXIT.ok
}

async function readAll(
  source: HistorySource,
  { fields, from, to, stepMs, gpu }: Asked,
  onProgress: (share: number) => void,
): Promise<HistoryRow[]> {
  const rows: HistoryRow[] = []
  const windowMs = POINTS_AT_ONCE * stepMs
  // On the grid of the steps, so that no step is in two answers.
  for (let begin = Math.floor(from / stepMs) * stepMs; begin < to; begin += windowMs) {
    onProgress((begin - from) / (to - from))
    const range = { from: Math.max(from, begin), to: Math.min(to, begin + windowMs - 1) }
    if (range.from >= range.to) continue
    const last = rows.at(-1)?.at ?? Number.NEGATIVE_INFINITY
    for (const row of rowsOf(await source.query({ gpu: gpu ?? '', fields, stepMs, ...range }), fields, gpu))
      if (row.at > last) rows.push(row)
  }
  return rows
}

async function print(rows: readonly HistoryRow[], { gpu, fields }: Asked, options: Record<string, unknown>): Promise<void> {
  const head = headOf(fields, gpu)
  const outputs: [unknown, () => string | Promise<Buffer>][] = [
    [options.csv, () => csvText(head, rows)],
    [options.json, () => jsonText(gpu, head, rows)],
    [options.parquet, () => parquetBytes(head, rows)],
  ]
  const wanted = outputs.filter(([target]) => target !== undefined)
  if (wanted.length === 0) writeOut(tableText(head, rows))
  for (const [target, make] of wanted) {
    const made = await make()
    // As everywhere: a dash is standard output.
    if (target === true || (target === '-' && typeof made === 'string')) writeOut(String(made))
    else {
      await writeFile(String(target), made).catch((cause: Error) => {
        throw new Failure(`${target} cannot be written: ${cause.message}`, { exitCode: EXIT.usage, cause })
      })
      process.stderr.write(`gpuwarden: wrote ${rows.length} records to ${target}\n`)
    }
  }
}

function readOptions(options: Record<string, unknown>): Asked {
  const now = Date.now()
  const gpu = options.gpu === undefined ? null : String(options.gpu)
  const to = timeOf('--to', String(options.to ?? 'now'), now)
  const from = timeOf('--from', String(options.from ?? '-1d'), now)
  if (!(from < to)) throw usage(`--from (${iso(from)}) must be before --to (${iso(to)})`, 'Swap them, or leave out --to to mean now.')
  const stepMs = options.step === undefined ? (USUAL_STEPS.find(([ms]) => to - from <= ms)?.[1] ?? DAY_MS) : Number(options.step) * 1000
  if (!(stepMs >= 1000))
    throw usage(`--step: expected seconds, 1 or more; got ${JSON.stringify(options.step)}`, 'Give 10, 60, 900, 3600 or a multiple.')
  if ((to - from) / stepMs > MOST_POINTS)
    throw usage(
      `this would be ${Math.ceil((to - from) / stepMs)} records; the limit is ${MOST_POINTS}`,
      'Give a longer --step or a shorter span.',
    )
  return { gpu, fields: seriesOf(options.series, gpu), from, to, stepMs }
}

function seriesOf(given: unknown, gpu: string | null): readonly SeriesField[] {
  const usual = gpu === HOST_SERIES ? USUAL_HOST : USUAL_GPU
  if (given === undefined) return usual
  if (given === 'all') return allSeries(gpu)
  const names = String(given)
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  return names.map((name) => {
    const found = columnFor(name, gpu)
    if (!found)
      throw usage(
        `--series: ${JSON.stringify(name)} is not a reading of ${nameOf(gpu)}`,
        `Give all, or one or more of: ${allSeries(gpu).join(', ')}.`,
      )
    return found.field
  })
}

function timeOf(flag: string, text: string, now: number): number {
  const at = parseTime(text, now)
  if (typeof at === 'string') throw usage(`${flag}: ${at}`, TIME_HINT)
  return at
}

function usage(message: string, hint: string): Failure {
  return new Failure(message, { exitCode: EXIT.usage, hint })
}

function nameOf(gpu: string | null): string {
  return gpu === HOST_SERIES ? 'the host' : gpu === null ? 'the GPU' : `GPU ${gpu}`
}

function iso(at: number): string {
  return Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : String(at)
}
