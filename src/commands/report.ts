import { statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../agent/config.ts'
import { detectRecording, openForReading } from '../agent/detect-recording.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { toJson } from '../core/json-text.ts'
import { type LayerSummary, layerSummary } from '../core/layer-figures.ts'
import { ledgerOf } from '../core/memory/ledger.ts'
import type { Finding } from '../core/model.ts'
import { VERSION } from '../core/version.ts'
import { detectors } from '../detectors/index.ts'
import { detectorOptions } from '../detectors/settings.ts'
import { type BuiltReport, buildReport, type ReportRequest, type ReportRun } from '../report/training-report.ts'
import { summaryText } from '../report/training-text.ts'
import { LayerHistory } from '../training/layer-history.ts'
import { RunFiles, recordedRuns } from '../training/run-files.ts'
import { leakLinesOf } from '../training/run-record.ts'
import { endWhenPipeCloses, writeOut } from './output.ts'
import { readTime } from './read-time.ts'

export async function report(config: Config, options: Record<string, unknown>, args: readonly string[]): Promise<number> {
  endWhenPipeCloses()
  if (args.length > 1) throw new Failure(`one log folder or run at a time; got ${args.length}`, { exitCode: EXIT.usage })
  const { path, run } = await findSubject(args[0] ?? config.values['log.dir'], config.values['log.dir'])
  const bar = new ProgressBar()
  const built = await reportOf(path, run, readPrice(options.pricePerHour), {
    ...readRange(options),
    detect: (until, onFindings) => detectFor(config, path, until, onFindings),
    onProgress: (share) => bar.show(share),
  })
  bar.clear()
  if (typeof options.html === 'string') {
    await writeHtml(built, options.html)
    process.stderr.write(`gpuwarden: wrote ${options.html}\n`)
  }
  if (options.json === true) writeOut(`${toJson(built.summary)}\n`)
  if (options.text === true || (options.json !== true && options.html === undefined)) writeOut(`${summaryText(built.summary)}\n`)
  return EXIT.ok
}

export function reportOf(
  path: string,
  run: ReportRun | null,
  pricePerGpuHour: number | null,
  more: Pick<ReportRequest, 'from' | 'to' | 'detect' | 'onProgress'> = {},
): Promise<BuiltReport> {
  return runsIn(path).then(async ({ runs, pidOf, pidsOf }) => {
    try {
      const subject = run && { ...run, layers: await layersIn(path, run.id) }
      return await buildReport({ path, run: subject, runs, pricePerGpuHour, ledgerOf, pidOf, pidsOf, ...more })
    } catch (error) {
      if (error instanceof Failure) throw error
      throw new Failure((error as Error).message, { exitCode: EXIT.noSource, cause: error })
    }
  })
}

/** The detectors on a recording, as `gpuwarden detect` runs them. */
export async function detectFor(
  { values }: Config,
  path: string,
  until: number | null,
  onFindings: (findings: readonly Finding[]) => void,
): Promise<void> {
  await detectRecording(await openForReading(path), {
    engine: { kinds: detectors, options: detectorOptions(values), disabled: values['detectors.disabled'], hostname: 'recording' },
    until,
    durationMs: null,
    devices: null,
    runs: await recordedRuns(path),
    onFindings,
  })
}

function readRange(options: Record<string, unknown>): { readonly from: number | null; readonly to: number | null } {
  const read = (name: 'from' | 'to') => (options[name] === undefined ? null : readTime(`--${name}`, String(options[name]), 'report'))
  const range = { from: read('from'), to: read('to') }
  if (range.from === null || range.to === null || range.from < range.to) return range
  throw new Failure(`--from must be before --to; got ${String(options.from)} and ${String(options.to)}`, { exitCode: EXIT.usage })
}

export async function writeHtml(built: BuiltReport, file: string): Promise<void> {
  const page = built.html(VERSION, Date.now())
  try {
    await writeFile(file, page)
  } catch (cause) {
    throw new Failure(`the report cannot be written to ${file}: ${(cause as Error).message}`, { exitCode: EXIT.usage, cause })
  }
}

export function readPrice(given: unknown): number | null {
  if (given === undefined) return null
  const price = Number(given)
  if (Number.isFinite(price) && price >= 0) return price
  throw new Failure(`--price-per-hour: expected dollars per GPU hour, 0 or more; got ${JSON.stringify(given)}`, { exitCode: EXIT.usage })
}

/** A folder, the id or name of a run of the log folder (the latest of that name), or a file: a run is named after its script, which lies there too. */
export async function findSubject(subject: string, logDir: string): Promise<{ path: string; run: ReportRun | null }> {
  const entry = statSync(subject, { throwIfNoEntry: false })
  if (entry?.isDirectory()) return { path: subject, run: null }
  const { runs } = await new RunFiles(join(logDir, 'runs')).list()
  const run = runs.find(({ id }) => id === subject) ?? runs.findLast(({ name }) => name === subject)
  if (run) return { path: logDir, run: { ...run, leakLines: leakLinesOf(run) } }
  if (entry) return { path: subject, run: null }
  const known = runs.slice(-5).map(({ id, name }) => `${name} (${id})`)
  throw new Failure(`"${subject}" is neither a log folder nor a run in ${logDir}`, {
    exitCode: EXIT.noSource,
    hint: known.length === 0 ? 'Give a folder with gpu_metrics_*.jsonl, or --log-dir.' : `The latest runs there: ${known.join(', ')}.`,
  })
}

/** Of the lowest rank that sent any. */
async function layersIn(logDir: string, id: string): Promise<LayerSummary | null> {
  const history = new LayerHistory()
  history.restore(await new RunFiles(join(logDir, 'runs')).layersOf(id))
  const [rank] = history.ranks
  return rank === undefined ? null : layerSummary(history.course(rank))
}

/** The runs of a log folder, and which process a rank was. */
async function runsIn(logDir: string): Promise<Required<Pick<ReportRequest, 'runs' | 'pidOf' | 'pidsOf'>>> {
  const files = new RunFiles(join(logDir, 'runs'))
  const pids = new Map<string, number>()
  const runs = await recordedRuns(logDir)
  for (const run of runs.slice(-64)) {
    if (run.pid !== null) pids.set(`0@${run.id}`, run.pid)
    const progress = (await files.progressOf(run.id)) as { ranks?: [number, { pid: number | null }][] } | null
    for (const [rank, { pid }] of progress?.ranks ?? []) if (pid !== null) pids.set(`${rank}@${run.id}`, pid)
  }
  return {
    runs: [...runs].sort((a, b) => a.startedAt - b.startedAt),
    pidOf: (run, rank) => pids.get(`${rank}@${run}`) ?? null,
    pidsOf: (run) => [...pids].flatMap(([key, pid]) => (key.endsWith(`@${run}`) ? [pid] : [])),
  }
}

const BAR_CELLS = 30
const REDRAW_MS = 100

/** On standard error, and only where somebody looks at it. */
class ProgressBar {
  #drawnAt = 0

  show(share: number): void {
    const now = Date.now()
    if (process.stderr.isTTY !== true || now - this.#drawnAt < REDRAW_MS) return
    this.#drawnAt = now
    const filled = Math.round(Math.min(1, share) * BAR_CELLS)
    process.stderr.write(`\r  reading ${'█'.repeat(filled)}${'░'.repeat(BAR_CELLS - filled)} ${Math.round(Math.min(1, share) * 100)}%`)
  }

  clear(): void {
    if (this.#drawnAt > 0) process.stderr.write('\r\u001b[K')
  }
}
