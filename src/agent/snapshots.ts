/** Memory snapshots for the web UI: those that runs wrote, and uploads; analyzed in processes of their own. */
import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { basename, isAbsolute } from 'node:path'
import type { Log } from '../core/kinds.ts'
import { readOomReport } from '../core/memory/oom-report.ts'
import type { Route } from '../core/route.ts'
import { Analyses } from '../snapshot/serve/analyses.ts'
import { type RunFile, snapshotRoutes } from '../snapshot/serve/routes.ts'
import { Uploads } from '../snapshot/serve/uploads.ts'
import type { RunRecord } from '../training/run-record.ts'

export interface SnapshotsOptions {
  readonly mostUploadBytes: number
  /** Most recently heard of first. */
  readonly runs: () => Promise<readonly RunRecord[]>
  readonly log: Log
  readonly entry?: URL
}

export interface Snapshots {
  readonly routes: readonly Route[]
  close(): Promise<void>
}

/** What the SDK calls its files. A run says where they lie: nothing else is opened on its word. */
const SDK_NAME = /^(?:oom|asked)-[\w.-]{1,200}\.pickle$/
const MOST_FILES = 200

export function createSnapshots({ mostUploadBytes, runs, log, entry }: SnapshotsOptions): Snapshots {
  const uploads = new Uploads({ mostBytes: mostUploadBytes })
  const analyses = new Analyses({ entry: entry ?? new URL('./snapshot-child.js', import.meta.url) })
  uploads.removeLeftovers().catch((error: unknown) => log.info({ err: error }, 'earlier uploads cannot be removed'))
  const files = async () => (await runs()).flatMap(filesOf).slice(0, MOST_FILES)
  return {
    routes: snapshotRoutes({ files, uploads, analyses, log }),
    async close() {
      analyses.close()
      await uploads.close().catch((error: unknown) => log.info({ err: error }, 'uploads cannot be removed'))
    },
  }
}

function filesOf(run: RunRecord): readonly RunFile[] {
  const report = readOomReport(run.report)
  const oom = report?.snapshot?.path
  return [
    ...(report && oom ? [fileOf(run, oom, 'out of memory', report.rank ?? 0, run.endedAt ?? run.updatedAt)] : []),
    ...run.recordings.flatMap(({ snapshotPath, rank, at }) =>
      snapshotPath === null ? [] : [fileOf(run, snapshotPath, 'asked for', rank, at)],
    ),
  ]
}

function fileOf({ id: run, name: runName, host }: RunRecord, path: string, kind: RunFile['kind'], rank: number, at: number): RunFile {
  const id = `r${createHash('sha256').update(`${run}\0${path}`).digest('hex').slice(0, 24)}`
  const name = basename(path)
  const notOpened =
    host !== null && host !== hostname()
      ? `it lies on ${host}`
      : isAbsolute(path) && SDK_NAME.test(name)
        ? null
        : 'its name is none that the SDK gives'
  return { id, path, name, run, runName, rank, at, kind, notOpened }
}
