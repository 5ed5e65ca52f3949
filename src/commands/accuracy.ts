import { ACCURACY_DAYS, readAccuracy } from '../agent/accuracy.ts'
import type { Config } from '../agent/config.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { formatDuration, formatPercent } from '../core/format.ts'
import type { ForecastAccuracy, ForecastRow } from '../report/forecast-accuracy.ts'
import { writeOut } from './output.ts'
import { alignColumns } from './table.ts'

export async function accuracy({ values }: Config, options: Record<string, unknown>): Promise<number> {
  const days = options.days === undefined ? ACCURACY_DAYS : Number(options.days)
  if (!(days > 0)) throw new Failure(`--days: expected a number above 0; got ${JSON.stringify(options.days)}`, { exitCode: EXIT.usage })
  const dir = values['log.dir']
  const { files, faults, accuracy: found } = await readAccuracy(dir, days, Date.now())
  for (const fault of faults) process.stderr.write(`gpuwarden: ${fault}\n`)
  if (files === 0)
    throw new Failure(`${dir}: no findings were recorded there`, {
      exitCode: EXIT.noSource,
      hint: 'Give the log folder of an agent with --log-dir.',
    })
  await writeOut(options.json === true ? `${JSON.stringify(jsonOf(found, days), null, 2)}\n` : textOf(found, days))
  return EXIT.ok
}

function jsonOf({ rows, outOfMemory, withoutWarning }: ForecastAccuracy, days: number) {
  return {
    days,
    out_of_memory: outOfMemory,
    without_warning: withoutWarning,
    detectors: rows.map((row) => ({
      detector: row.detector,
      forecasts: row.forecasts,
      came_true: row.cameTrue,
      did_not_happen: row.didNotHappen,
      unknown: row.unknown,
      open: row.open,
      median_lead_seconds: row.medianLeadSeconds,
      median_error_seconds: row.medianErrorSeconds,
    })),
  }
}

function textOf({ rows, outOfMemory, withoutWarning }: ForecastAccuracy, days: number): string {
  const head = `Forecasts of the last ${days} days\n`
  const deaths =
    outOfMemory === 0 ? 'No run ran out of memory.' : `${outOfMemory} runs ran out of memory, ${withoutWarning} of them without a warning.`
  if (rows.length === 0) return `${head}\nNothing was forecast. ${deaths}\n`
  const titles = ['detector', 'forecasts', 'came true', 'did not happen', 'not known', 'open', 'right', 'lead', 'error']
  const table = alignColumns([titles, ...rows.map(cells)])
  return `${head}\n${table.join('\n')}\n\n${deaths}\n`
}

function cells(row: ForecastRow): string[] {
  const judged = row.cameTrue + row.didNotHappen
  const seconds = (value: number | null) => (value === null ? '–' : formatDuration(value * 1000))
  return [
    row.detector,
    ...[row.forecasts, row.cameTrue, row.didNotHappen, row.unknown, row.open].map(String),
    judged === 0 ? '–' : formatPercent(row.cameTrue / judged),
    seconds(row.medianLeadSeconds),
    seconds(row.medianErrorSeconds),
  ]
}
