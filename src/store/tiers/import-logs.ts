/** Takes the logs that were written before records were kept into the journal, one file after the other, each once. */
import { join } from 'node:path'
import { absent, readdir, stat } from '../../core/disk.ts'
import { parseGpuLine, parseHostLine, SlowCarry } from '../../core/recording/recording.ts'
import { parseFileName } from '../file-name.ts'
import { MinuteTotals } from '../minute-ring.ts'
import { pacedLines } from '../past-files.ts'
import { Commit } from './commit.ts'
import { journalLine } from './journal-line.ts'
import { columnValues, hostDevice, MOST_SERIES, seriesOf } from './series.ts'
import { readState, STATE_FILE, type TierState } from './state.ts'
import { FINEST, FOLDER, JOURNAL_FOLDER } from './tier-table.ts'

const STREAMS: readonly string[] = ['gpu_metrics', 'host_metrics']

export interface ImportProgress {
  readonly doneBytes: number
  readonly totalBytes: number
}

export interface LogImport {
  readonly logDir: string
  /** Where the records go; in `logDir` by default. */
  readonly root?: string
  /** Only logs that may have lines from then to then. */
  readonly from?: number
  readonly to?: number
  readonly onProgress?: (progress: ImportProgress) => void
  /** After each log: days that no later log can add to may be closed. */
  readonly onLogDone?: (day: string) => Promise<void>
}

interface PastLog {
  readonly name: string
  readonly key: string
  readonly openedAt: number
  readonly bytes: number
}

/** Returns what could not be read, by name. A log that was interrupted begins anew: nothing of it is in the journal before all is. */
export async function importLogs(order: LogImport): Promise<readonly string[]> {
  const { logDir, root = join(logDir, FOLDER), onProgress, onLogDone } = order
  const state = await readState(root)
  if (state === null || state.imported === null) return []
  const done = new Set(state.imported)
  const logs = await pastLogs(order, state.startedAt)
  const totalBytes = logs.reduce((sum, { bytes }) => sum + bytes, 0)
  let doneBytes = 0
  const faults: string[] = []
  for (const log of logs) {
    onProgress?.({ doneBytes, totalBytes })
    if (!done.has(log.key)) {
      const days = await recordsOf(join(logDir, log.name), log, state.startedAt, faults)
      done.add(log.key)
      await keep(root, log, days, { ...state, imported: [...done] })
      await onLogDone?.(new Date(log.openedAt).toISOString().slice(0, 10))
    }
    doneBytes += log.bytes
  }
  await keep(root, null, new Map(), { ...state, imported: null })
  onProgress?.({ doneBytes, totalBytes })
  return faults
}

async function pastLogs({ logDir: dir, from = 0, to = Number.POSITIVE_INFINITY }: LogImport, before: number): Promise<readonly PastLog[]> {
  const found: PastLog[] = []
  const names = await readdir(dir)
  for (const name of names) {
    const own = parseFileName(name)
    const isCopy = own?.compressed && names.includes(name.slice(0, -3))
    // Of a second writer in the folder: it saw the same GPUs.
    if (!own || !STREAMS.includes(own.stream) || own.pid !== null || own.openedAt >= Math.min(before, to) || isCopy) continue
    const stats = await stat(join(dir, name)).catch(absent)
    if (stats?.isFile() && stats.mtimeMs >= from)
      found.push({ name, key: name.replace(/\.gz$/, ''), openedAt: own.openedAt, bytes: stats.size })
  }
  return found.sort((a, b) => a.openedAt - b.openedAt || (a.name < b.name ? -1 : 1))
}

/** Lines of the journal, by day. */
async function recordsOf(path: string, { name, bytes }: PastLog, before: number, faults: string[]): Promise<Map<string, string[]>> {
  const days = new Map<string, string[]>()
  const open = new Map<string, MinuteTotals>()
  const values = new Float64Array(MOST_SERIES)
  const slow = new SlowCarry()
  const end = (device: string, totals: MinuteTotals) => {
    const at = totals.minute * FINEST.stepMs
    const line = journalLine(device, at, totals)
    const day = new Date(at).toISOString().slice(0, 10)
    if (line === null) return
    const lines = days.get(day)
    if (lines) lines.push(line)
    else days.set(day, [line])
  }
  const take = (device: string, at: number, sample: object) => {
    if (at >= before) return
    const table = seriesOf(device)
    const step = Math.floor(at / FINEST.stepMs)
    let totals = open.get(device)
    if (totals?.minute !== step) {
      if (totals) end(device, totals)
      totals = new MinuteTotals(step, table.all.length)
      open.set(device, totals)
    }
    columnValues(table, sample, values)
    totals.add(values.subarray(0, table.all.length))
  }
  const isHostLog = name.startsWith('host_')
  try {
    for await (const line of pacedLines({ path, name, bytes, start: 0 })) {
      if (isHostLog) {
        const parsed = parseHostLine(line)
        const provenance = line.includes('"provenance":"simulated"') ? 'simulated' : 'live'
        if (typeof parsed !== 'string') take(hostDevice(provenance), parsed.at, parsed)
      } else {
        const parsed = parseGpuLine(line)
        if (typeof parsed !== 'string') take(parsed.sample.gpu, parsed.at, slow.fill(parsed.sample))
      }
    }
  } catch (error) {
    // What came before the damage is good.
    faults.push(`${name}: ${(error as Error).message}`)
  }
  for (const [device, totals] of open) end(device, totals)
  return days
}

/** The records of a log, and that it was taken in, at once. */
async function keep(root: string, log: PastLog | null, days: ReadonlyMap<string, readonly string[]>, state: TierState): Promise<void> {
  const commit = new Commit(root)
  for (const [day, lines] of days) await commit.stage({ path: join(JOURNAL_FOLDER, `${day}T00.${log?.key ?? ''}`), bytes: lines.join('') })
  await commit.stage({ path: STATE_FILE, bytes: `${JSON.stringify(state)}\n` })
  await commit.apply([])
}
