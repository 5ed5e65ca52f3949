/** `gpuwarden detect`: what the detectors say of a recording, or how sudden the changes of a column are. */
import type { Config } from '../agent/config.ts'
import { type Detection, detectRecording, openForReading } from '../agent/detect-recording.ts'
import { EXIT, Failure } from '../core/failure.ts'
import { formatMoment, printable } from '../core/format.ts'
import type { Finding, Reading } from '../core/model.ts'
import { describeSkipped } from '../core/recording/recording.ts'
import { detectors } from '../detectors/index.ts'
import { detectorOptions } from '../detectors/settings.ts'
import { recordedRuns } from '../training/run-files.ts'
import { detectMemory, readCapacity } from './csv-memory.ts'
import { scoreCsv, scoresAsCsv, scoresAsNdjson } from './csv-scores.ts'
import { findingLine } from './finding-ndjson.ts'
import { endWhenPipeCloses, writeOut } from './output.ts'
import { readTime } from './read-time.ts'

export async function detect(config: Config, options: Record<string, unknown>, args: readonly string[]): Promise<number> {
  endWhenPipeCloses()
  if (options.csv !== undefined) return options.as === undefined ? scores(options) : memory(config, options)
  for (const flag of ['time', 'value', 'scores', 'as', 'capacity'])
    if (options[flag] !== undefined) throw usage(`--${flag} needs --csv FILE`)
  const path = args[0] ?? pathOf(config.values.source)
  if (path === null) throw usage('which recording? Give a log folder, a .jsonl or .jsonl.gz, or a CSV log of nvidia-smi')
  if (args.length > 1) throw usage(`one recording at a time; got ${args.length}`)
  const { values } = config
  const isTable = options.json !== true && process.stdout.isTTY === true
  const until = options.until === undefined ? null : readTime('--until', String(options.until), 'detect')
  const durationMs = readDuration(options.duration)
  const recording = await openForReading(path)
  let isFirst = true
  const detection = await detectRecording(recording, {
    engine: {
      kinds: detectors,
      options: detectorOptions(values),
      disabled: values['detectors.disabled'],
      hostname: 'recording',
      onFailure: ({ detector, error }) =>
        process.stderr.write(
          `gpuwarden: the detector ${detector} failed and was switched off: ${(error as Error)?.message ?? String(error)}\n`,
        ),
    },
    until,
    durationMs,
    runs: await recordedRuns(path),
    devices: values.devices === null ? null : new Set(values.devices),
    onFindings: (findings) => {
      if (isTable && isFirst) writeOut(`${TABLE_HEAD}\n`)
      isFirst = false
      writeOut(findings.map((finding) => `${isTable ? tableRow(finding) : findingLine(finding)}\n`).join(''))
    },
  })
  if (isTable && isFirst) writeOut('No findings.\n')
  for (const line of summary(path, detection, lastShown(detection, until, durationMs))) process.stderr.write(`gpuwarden: ${line}\n`)
  if (detection.stats.firstAt === null)
    throw new Failure(`${path} has no usable line`, {
      exitCode: EXIT.noSource,
      hint: 'Each line must be a JSON object with a timestamp, as gpuwarden writes it; see docs/cli.md.',
    })
  return EXIT.ok
}

const TABLE_HEAD = 'TIME                            SEVERITY  STATE     DETECTOR         GPU  PID      MESSAGE'

function tableRow({ at, severity, state, detector, subject, message, provenance }: Finding): string {
  return [
    formatMoment(at, true).padEnd(30),
    severity.padEnd(8),
    state.padEnd(8),
    detector.padEnd(15),
    String(subject.gpuIndex ?? '-').padEnd(3),
    String(subject.pid ?? '-').padEnd(7),
    `${provenance === 'simulated' ? 'SIMULATED ' : ''}${printable(message)}`,
  ].join('  ')
}

function lastShown({ stats }: Detection, until: Reading, durationMs: Reading): Reading {
  const end = durationMs === null || stats.firstAt === null ? null : stats.firstAt + durationMs
  return until === null || end === null ? (until ?? end) : Math.min(until, end)
}

function summary(path: string, { stats, gpuSamples, memorySamples, steps, findings, isSimulated }: Detection, until: Reading): string[] {
  const range =
    stats.firstAt === null
      ? ''
      : `, ${formatMoment(stats.firstAt)} to ${formatMoment(Math.min(until ?? Number.POSITIVE_INFINITY, stats.lastAt ?? stats.firstAt))}`
  const skipped = Object.values(stats.skipped).reduce((sum, count) => sum + count, 0)
  const lines = [
    `${path}: ${gpuSamples} GPU samples and ${steps} training steps${range}; ${findings} finding updates; ${skipped} of ${stats.lines} lines skipped, ${stats.late} out of order`,
  ]
  if (isSimulated) lines.push('the recording is of SIMULATED GPUs')
  const reasons = describeSkipped(stats)
  if (reasons !== null) lines.push(`skipped: ${reasons}`)
  if (gpuSamples > 0 && memorySamples === 0)
    lines.push('no sample has the GPU memory in use and in total: the memory detectors had nothing to work with')
  return lines
}

interface Columns {
  readonly csv: string
  readonly time: string
  readonly value: string
}

function columnsOf({ csv, time, value }: Record<string, unknown>): Columns {
  if (time === undefined || value === undefined)
    throw usage('--csv needs --time COLUMN and --value COLUMN: which column is the time, and which the series')
  return { csv: String(csv), time: String(time), value: String(value) }
}

async function memory(config: Config, options: Record<string, unknown>): Promise<number> {
  const { csv, time, value } = columnsOf(options)
  if (options.as !== 'memory') throw usage(`--as: expected "memory", the one kind of column that is judged; got "${String(options.as)}"`)
  if (options.capacity === undefined) throw usage('--as memory needs --capacity BYTES: how much memory there is')
  const isTable = options.json !== true && process.stdout.isTTY === true
  let isFirst = true
  const { rows, withoutValue, withoutTime } = await detectMemory({
    path: csv,
    time,
    value,
    capacityBytes: readCapacity(String(options.capacity)),
    options: detectorOptions(config.values),
    onFindings: (findings) => {
      if (isTable && isFirst) writeOut(`${TABLE_HEAD}\n`)
      isFirst = false
      writeOut(findings.map((finding) => `${isTable ? tableRow(finding) : findingLine(finding)}\n`).join(''))
    },
  })
  if (isTable && isFirst) writeOut('No findings.\n')
  process.stderr.write(
    `gpuwarden: ${csv}: ${rows} rows; ${withoutValue} without a number in "${value}", ${withoutTime} without a time in "${time}"\n`,
  )
  return EXIT.ok
}

async function scores(options: Record<string, unknown>): Promise<number> {
  const { csv, time, value } = columnsOf(options)
  if (options.capacity !== undefined) throw usage('--capacity needs --as memory')
  const scored = await scoreCsv(csv, time, value)
  writeOut(options.json === true ? scoresAsNdjson(time, scored) : scoresAsCsv(time, scored))
  const { withoutValue, withoutTime, times } = scored
  if (times.length === 0) process.stderr.write(`gpuwarden: ${csv} has a header and no rows\n`)
  if (withoutValue > 0)
    process.stderr.write(`gpuwarden: ${withoutValue} of ${times.length} rows have no number in "${value}"; they score 0\n`)
  if (withoutTime > 0)
    process.stderr.write(
      `gpuwarden: ${withoutTime} of ${times.length} rows have no time in "${time}"; each is taken to follow the row before\n`,
    )
  return EXIT.ok
}

function pathOf(source: string): string | null {
  return source.startsWith('replay:') ? source.slice('replay:'.length) : null
}

/** 0 is all of it, as for a live watch it is without end. */
function readDuration(given: unknown): number | null {
  const seconds = given === undefined ? 0 : Number(given)
  if (!Number.isFinite(seconds) || seconds < 0) throw usage(`--duration: expected seconds, 0 or more; got "${String(given)}"`)
  return seconds === 0 ? null : seconds * 1000
}

function usage(message: string): Failure {
  return new Failure(message, { exitCode: EXIT.usage, hint: '"gpuwarden detect --help" shows examples.' })
}
