/** Fills the history from the files of earlier runs, so that a restart does not empty the charts. */
import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { createGunzip } from 'node:zlib'
import type { GpuSample } from '../model.ts'
import { parseGpuLine, SlowCarry } from '../recording/recording.ts'
import { parseFileName } from './file-name.ts'

const MAX_INPUT_BYTES = 64 * 1024 * 1024
const HOUR_MS = 3_600_000
const MAX_LINE_CHARS = 1024 * 1024
/** Works this long, then rests twice as long: a third of a core at most, and no tick waits for it. */
const WORK_MS = 10
const REST_MS = 20
/** How a line of ours begins; others are parsed to learn their time. */
const LINE_START = '{"timestamp":"'
const TIME_CHARS = 24

export interface Refillable {
  startFilling(): { add(sample: GpuSample): boolean; end(): void }
}

export interface RefillOptions {
  /** Epoch ms: later samples are live ones, and are left out. */
  readonly now: number
  readonly hours: number
  readonly signal?: AbortSignal
}

export interface RefillOutcome {
  readonly files: number
  readonly bytes: number
  readonly samples: number
  /** What could not be read, in plain words. */
  readonly faults: readonly string[]
}

interface Input {
  readonly path: string
  readonly name: string
  readonly bytes: number
  /** Where to begin: more than 0 when only the end of a large file fits. */
  readonly start: number
}

/** Reads the newest files first; never rejects. Live samples may come at any time meanwhile. */
export async function refillHistory(history: Refillable, dir: string, options: RefillOptions): Promise<RefillOutcome> {
  const since = options.now - options.hours * HOUR_MS
  const faults: string[] = []
  let samples = 0
  let bytes = 0
  const inputs = await chooseInputs(dir, since).catch((error: Error): Input[] => {
    faults.push(`${dir}: ${error.message}`)
    return []
  })
  for (const input of inputs) {
    if (options.signal?.aborted) break
    bytes += input.bytes
    const filling = history.startFilling()
    const slow = new SlowCarry()
    try {
      for await (const line of pacedLines(input)) {
        if (options.signal?.aborted) break
        if (line.startsWith(LINE_START) && Date.parse(line.slice(LINE_START.length, LINE_START.length + TIME_CHARS)) < since) continue
        const parsed = parseGpuLine(line)
        if (typeof parsed === 'string' || parsed.at < since || parsed.at >= options.now) continue
        if (filling.add(slow.fill(parsed.sample))) samples += 1
      }
    } catch (error) {
      faults.push(`${input.name}: ${(error as Error).message}`)
    }
    filling.end()
  }
  return { files: inputs.length, bytes, samples, faults }
}

async function chooseInputs(dir: string, since: number): Promise<Input[]> {
  const names: string[] = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const candidates = names.flatMap((name) => {
    const own = parseFileName(name)
    // A crash between the two last steps of compressing leaves both, with the same lines.
    const twin = own?.compressed && names.includes(name.slice(0, -'.gz'.length))
    return own?.stream === 'gpu_metrics' && !twin ? [{ name, own }] : []
  })
  candidates.sort((a, b) => b.own.openedAt - a.own.openedAt || (a.name < b.name ? 1 : -1))
  const inputs: Input[] = []
  let room = MAX_INPUT_BYTES
  for (const { name, own } of candidates) {
    const path = join(dir, name)
    // Compressed and removed since the folder was listed: its time is a hole then.
    const stats = await stat(path).catch(() => null)
    if (!stats || stats.mtimeMs < since) continue
    if (stats.size > room && own.compressed) break
    const size = Math.min(stats.size, room)
    inputs.push({ path, name, bytes: size, start: stats.size - size })
    room -= size
    if (room === 0) break
  }
  return inputs
}

async function* pacedLines({ path, start }: Input): AsyncGenerator<string> {
  const file = createReadStream(path, { start })
  const source: Readable = path.endsWith('.gz') ? file.pipe(createGunzip()) : file
  file.on('error', (error) => source.destroy(error))
  let rest = ''
  let skipFirst = start > 0
  let workFrom = performance.now()
  try {
    for await (const chunk of source.setEncoding('utf8')) {
      const lines = (rest + (chunk as string)).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > MAX_LINE_CHARS) rest = ''
      for (const line of lines) {
        if (!skipFirst) yield line
        skipFirst = false
        if (performance.now() - workFrom < WORK_MS) continue
        await sleep(REST_MS)
        workFrom = performance.now()
      }
    }
    if (rest !== '') yield rest
  } finally {
    source.destroy()
    file.destroy()
  }
}
