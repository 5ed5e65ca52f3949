/** gpu_monitor.log: JSON lines, each with the correlation id of this process's run. */
import { renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { destination, type Level, multistream, pino, type StreamEntry, stdTimeFunctions } from 'pino'
import type { Log } from './kinds.ts'
import { makeFolderSync } from './make-folder.ts'

export interface OpenLog {
  readonly log: Log
  readonly file: string | null
  close(): void
}

export interface LogOptions {
  /** null: no file. */
  readonly dir: string | null
  readonly level: Level | 'silent'
  readonly stderr: boolean
  readonly maxBytes: number
  /** One per process run; W3C trace-id form. */
  readonly runId: string
}

const ROTATION_CHECK_MS = 30_000

/** Never fails: where the file cannot be written the log goes to standard error, and says why. */
export function openLog(options: LogOptions): OpenLog {
  const streams: StreamEntry[] = []
  const trouble: string[] = []
  const file = options.dir === null ? null : openFile(options.dir, options.maxBytes, trouble)
  if (file) streams.push({ stream: file.stream, level: 'debug' })
  if (options.stderr || (trouble.length > 0 && options.level !== 'silent'))
    streams.push({ stream: destination({ dest: 2, sync: true }), level: 'debug' })
  const logger = pino(
    {
      level: options.level,
      base: { pid: process.pid, correlation_id: options.runId },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: ['token', 'password', '*.token', '*.password', 'headers.authorization'], censor: '********' },
    },
    multistream(streams),
  )
  for (const line of trouble) logger.warn({}, line)
  return { log: logger, file: file?.path ?? null, close: () => file?.close() }
}

function openFile(
  dir: string,
  maxBytes: number,
  trouble: string[],
): { stream: ReturnType<typeof destination>; path: string; close(): void } | null {
  const path = join(dir, 'gpu_monitor.log')
  try {
    makeFolderSync(dir, 0o750)
    setAside(path, maxBytes)
    const stream = destination({ dest: path, sync: true, mode: 0o640 })
    // A disk that fills up must not end the monitor: the store reports the fault, the log loses lines.
    stream.on('error', () => undefined)
    const timer = setInterval(() => {
      if (setAside(path, maxBytes)) stream.reopen()
    }, ROTATION_CHECK_MS)
    timer.unref()
    return {
      stream,
      path,
      close: () => {
        clearInterval(timer)
        stream.end()
      },
    }
  } catch (error) {
    trouble.push(`${path} cannot be written (${(error as Error).message}); logging to standard error instead`)
    return null
  }
}

function setAside(path: string, maxBytes: number): boolean {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size < maxBytes) return false
  renameSync(path, `${path}.1`)
  return true
}
