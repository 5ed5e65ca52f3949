/** gpu_monitor.log: JSON lines, each with a correlation id: of the training run that it is about, or of this process. */
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { destination, type Level, multistream, pino, type StreamEntry, stdTimeFunctions } from 'pino'
import type { Log } from '../core/kinds.ts'
import { makeFolderSync } from '../core/make-folder.ts'
import { refuseOtherThanFile } from '../core/system-file.ts'
import { LogWriter } from './log-writer.ts'

export interface OpenLog {
  readonly log: Log
  readonly file: string | null
  /** Gives how many lines could not be written because the disk does not answer. */
  close(): Promise<number>
}

export interface LogOptions {
  readonly dir: string | null
  /** False: the folder does not answer. It is written to when it does. */
  readonly answers?: boolean
  readonly level: Level | 'silent'
  readonly stderr: boolean
  readonly maxBytes: number
  /** One per process run; W3C trace-id form. */
  readonly runId: string
}

/** Never fails: where the file cannot be written the log goes to standard error, and says why. */
export function openLog(options: LogOptions): OpenLog {
  const streams: StreamEntry[] = []
  const trouble: string[] = []
  const stderr = destination({ dest: 2, sync: true })
  const file = options.dir === null ? null : openFile(options.dir, options, trouble)
  const { writer } = file ?? {}
  if (writer) streams.push({ stream: { write: (line) => writer.write(escaped(line)) }, level: 'debug' })
  if (options.stderr || (trouble.length > 0 && options.level !== 'silent'))
    streams.push({ stream: { write: (line) => stderr.write(escaped(line)) }, level: 'debug' })
  const logger = pino(
    {
      level: options.level,
      base: { pid: process.pid },
      // Not in the base: a line that names its own would have two.
      mixin: () => ({ correlation_id: options.runId }),
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: ['token', 'password', '*.token', '*.password', 'headers.authorization'], censor: '********' },
    },
    multistream(streams),
  )
  for (const line of trouble) logger.warn({}, line)
  return { log: logger, file: file?.path ?? null, close: async () => (await file?.writer.close()) ?? 0 }
}

function openFile(dir: string, options: LogOptions, trouble: string[]): { writer: LogWriter; path: string } | null {
  const path = join(dir, 'gpu_monitor.log')
  try {
    if (options.answers === false) trouble.push(`${dir} does not answer: logging to standard error until it does`)
    else checkWritable(dir, path)
  } catch (error) {
    trouble.push(`${path} cannot be written (${(error as Error).message}); logging to standard error instead`)
    return null
  }
  const line = (fields: object, msg: string) => {
    const head = { level: 'warn', time: new Date().toISOString(), pid: process.pid, correlation_id: options.runId }
    return `${JSON.stringify({ ...head, ...fields, msg })}\n`
  }
  const lossLine = (lost: number) => line({ lost }, `${lost} lines of this log were lost while its disk did not take them`)
  const removedLine = () => line({}, 'this log was removed or replaced while it was being written: a new file was started')
  return { writer: new LogWriter({ dir, path, maxBytes: options.maxBytes, lossLine, removedLine }), path }
}

/** JSON leaves the C1 control characters as they are, and a terminal obeys them as it does escape sequences. */
function escaped(line: string): string {
  return line.replace(/[\u007f-\u009f]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`)
}

/** Throws what keeps it from being written. */
function checkWritable(dir: string, path: string): void {
  makeFolderSync(dir, 0o750)
  refuseOtherThanFile(path)
  closeSync(openSync(path, 'a', 0o640))
}
