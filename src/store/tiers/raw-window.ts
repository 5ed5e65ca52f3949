/** The samples as they were taken, for a short time of which the logs are still there. */
import { join } from 'node:path'
import { absent, open, readdir, stat } from '../../core/disk.ts'
import type { HistoryQuery } from '../../core/kinds.ts'
import type { GpuSample } from '../../core/model.ts'
import { parseGpuLine, parseHostLine, SlowCarry } from '../../core/recording/recording.ts'
import { parseFileName } from '../file-name.ts'
import { lineBlocks } from './line-blocks.ts'
import { isHost } from './series.ts'

/** Slow readings are on a line only where they were read. */
const CARRY_MS = 35_000
const LINE_START = '{"timestamp":"'
const TIME_CHARS = 24
const PROBE_BYTES = 64 * 1024
const NEAR_BYTES = 512 * 1024

export interface RawSample {
  readonly at: number
  readonly readings: object
}

/** In order of time; empty where no log covers it. */
export async function readRawWindow(
  logDir: string,
  { gpu, from, to }: Pick<HistoryQuery, 'gpu' | 'from' | 'to'>,
  onDamage: (path: string, error: Error) => void,
): Promise<RawSample[]> {
  const found: RawSample[] = []
  const slow = new SlowCarry()
  const take = isHost(gpu) ? takeHost : takeGpu
  for (const path of await filesAround(logDir, isHost(gpu) ? 'host_metrics' : 'gpu_metrics', from, to)) {
    try {
      await eachLine(path, from - CARRY_MS, to, take)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') onDamage(path, error as Error)
    }
  }
  return found.sort((a, b) => a.at - b.at)

  function takeGpu(line: string): void {
    if (!line.includes(gpu)) return
    const parsed = parseGpuLine(line)
    if (typeof parsed === 'string' || parsed.sample.gpu !== gpu) return
    const sample: GpuSample = slow.fill(parsed.sample)
    if (sample.at >= from && sample.at <= to) found.push({ at: sample.at, readings: sample })
  }

  function takeHost(line: string): void {
    const parsed = parseHostLine(line)
    if (typeof parsed !== 'string' && parsed.at >= from && parsed.at <= to) found.push({ at: parsed.at, readings: parsed })
  }
}

async function filesAround(dir: string, stream: string, from: number, to: number): Promise<readonly string[]> {
  const names = (await readdir(dir).catch(absent)) ?? []
  const found: { readonly path: string; readonly openedAt: number }[] = []
  for (const name of names) {
    const own = parseFileName(name)
    // A second writer saw the same GPUs; a compressed copy has the same lines as its original.
    if (own?.stream !== stream || own.pid !== null || own.openedAt > to || (own.compressed && names.includes(name.slice(0, -3)))) continue
    const path = join(dir, name)
    const stats = await stat(path).catch(absent)
    if (stats?.isFile() && stats.mtimeMs >= from) found.push({ path, openedAt: own.openedAt })
  }
  return found.sort((a, b) => a.openedAt - b.openedAt).map(({ path }) => path)
}

async function eachLine(path: string, from: number, to: number, take: (line: string) => void): Promise<void> {
  const start = path.endsWith('.gz') ? 0 : await offsetNear(path, from)
  for await (const lines of lineBlocks(path, start)) {
    const [first = '', last = ''] = [lines.find(isTimed), lines.findLast(isTimed)]
    if (timeOf(first) > to) return
    if (timeOf(last) < from) continue
    for (const line of lines) {
      const at = timeOf(line)
      if (at >= from && at <= to) take(line)
    }
  }
}

/** Of a plain file: where lines of this time begin, or a little before. */
async function offsetNear(path: string, from: number): Promise<number> {
  const file = await open(path, 'r')
  try {
    let low = 0
    let high = (await file.stat()).size
    const probe = Buffer.allocUnsafe(PROBE_BYTES)
    while (high - low > NEAR_BYTES) {
      const middle = Math.floor((low + high) / 2)
      const { bytesRead } = await file.read(probe, middle)
      const at = timeOf(probe.toString('latin1', 0, bytesRead).split('\n').slice(1).find(isTimed) ?? '')
      if (at < from) low = middle
      else high = middle
    }
    return low
  } finally {
    await file.close()
  }
}

function isTimed(line: string): boolean {
  return line.startsWith(LINE_START)
}

/** NaN: the line does not begin as ours do. */
function timeOf(line: string): number {
  return isTimed(line) ? Date.parse(line.slice(LINE_START.length, LINE_START.length + TIME_CHARS)) : Number.NaN
}
