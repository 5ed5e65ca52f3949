/** Reads a log folder once, streaming, for a report. */
import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Finding } from '../core/model.ts'
import { findRecordingFiles, type RecordingFile, readLines } from '../core/recording/file.ts'
import { TimeBuckets } from './training-buckets.ts'
import { type LineKind, ReportReader } from './training-lines.ts'
import type { Recorded } from './training-recorded.ts'

/** A guess, for the progress bar only. */
const GZIP_RATIO = 12

export interface ReadOptions {
  /** Lines before and after are left out. */
  readonly from?: number
  readonly to?: number
  /** Processes whose memory counts as the run's own. */
  readonly ownPids?: ReadonlySet<number>
  /** Looks for findings where none were recorded. */
  readonly detect?: (onFindings: (findings: readonly Finding[]) => void) => Promise<unknown>
  /** 0–1 */
  readonly onProgress?: (share: number) => void
}

/** `isDetected`: the findings are not recorded ones. */
export async function readForReport(path: string, options: ReadOptions = {}): Promise<Recorded & { readonly isDetected: boolean }> {
  const files = await findRecordingFiles(path)
  const starts = files.map(({ firstAt }) => firstAt).filter(Number.isFinite)
  const origin = Math.max(options.from ?? Number.NEGATIVE_INFINITY, starts.length === 0 ? 0 : Math.min(...starts))
  const { from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY, ownPids } = options
  const reader = new ReportReader(new TimeBuckets(origin), from, to, ownPids)
  const findingFiles = await findingsBeside(path)
  const work = await weigh([...files.filter(isUsed), ...findingFiles.map((file) => ({ path: file, kind: 'findings' as const }))])
  const total = work.reduce((sum, { weight }) => sum + weight, 0)
  let done = 0
  for (const { path: file, kind, weight } of work) {
    let read = 0
    for await (const { lines, tooLong } of readLines(file, (fault) =>
      reader.faults.push(`${basename(file)}: ${fault.replace('_', ' ')}`),
    )) {
      reader.skipped += tooLong
      for (const line of lines) {
        read += line.length + 1
        if (line !== '') reader.take(kind, line)
      }
      options.onProgress?.((done + Math.min(weight, read)) / Math.max(1, total))
    }
    done += weight
  }
  const isDetected = findingFiles.length === 0 && options.detect !== undefined && !(await wasWatched(path))
  if (isDetected)
    await options.detect?.((findings) => {
      for (const finding of findings) reader.takeFinding(finding)
    })
  return { ...reader.finish(), isDetected }
}

/** Lines of the host and of the driver are not shown. */
function isUsed({ kind }: RecordingFile): boolean {
  return kind === 'gpu_devices' || kind === 'gpu_metrics' || kind === 'training_metrics'
}

/** Whether an agent wrote the folder: then its detectors looked, and found nothing. */
async function wasWatched(path: string): Promise<boolean> {
  return (await readdir(await folderOf(path))).some((name) => /^detectors(-demo)?\.json$/.test(name))
}

async function folderOf(path: string): Promise<string> {
  return (await stat(path)).isDirectory() ? path : dirname(path)
}

async function findingsBeside(path: string): Promise<string[]> {
  const folder = await folderOf(path)
  const names = (await readdir(folder)).filter((name) => /^findings_.*\.jsonl(\.gz)?$/.test(name)).sort()
  return names.filter((name) => !(name.endsWith('.gz') && names.includes(name.slice(0, -3)))).map((name) => join(folder, name))
}

async function weigh(files: readonly { path: string; kind: LineKind }[]): Promise<{ path: string; kind: LineKind; weight: number }[]> {
  return Promise.all(
    files.map(async ({ path, kind }) => ({ path, kind, weight: (await stat(path)).size * (path.endsWith('.gz') ? GZIP_RATIO : 1) })),
  )
}
