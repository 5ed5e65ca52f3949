/** The files of a recording and their lines, read in bounded memory whatever is wrong with them. */
import type { Stats } from 'node:fs'
import { type FileHandle, open, readdir, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { constants, createGunzip, gunzipSync } from 'node:zlib'
import { refuseOtherThanFile } from '../system-file.ts'
import { parseObject, parseTimestamp } from './json.ts'
import { headerFault } from './nvidia-smi-csv.ts'
import { asUtf8, textOf } from './text.ts'

/** In the order in which lines of one moment are returned. */
export const RECORDING_KINDS = ['gpu_devices', 'host_metrics', 'gpu_events', 'gpu_metrics', 'training_metrics'] as const
export type RecordingKind = (typeof RECORDING_KINDS)[number]

export interface RecordingFile {
  readonly path: string
  readonly kind: RecordingKind
  readonly format: 'jsonl' | 'nvidia-smi-csv'
  /** Time of its first usable line; -Infinity: none near the start. */
  readonly firstAt: number
}

const EXPECTED = `expected a folder with ${RECORDING_KINDS.map((kind) => `${kind}*.jsonl`).join(', ')} (or .jsonl.gz), one such file, or a CSV log of nvidia-smi`
const HEAD_BYTES = 64 * 1024
const BLOCK_BYTES = 256 * 1024
/** Small, because a block may inflate a thousandfold. */
const GZIP_BLOCK_BYTES = 16 * 1024
export const MAX_LINE_CHARS = 1024 * 1024

/** Sorted by name; throws when `path` holds none. */
export async function findRecordingFiles(path: string): Promise<readonly RecordingFile[]> {
  if (path === '') throw new Error(`no recording was given; ${EXPECTED}`)
  const found = await stat(path).catch((cause: NodeJS.ErrnoException) => {
    throw new Error(`cannot read the recording ${path} (${cause.code ?? cause.message}); ${EXPECTED}`, { cause })
  })
  if (!found.isDirectory()) return [await describeFile(path, kindOfName(basename(path)), found)]
  const names = (await readdir(path)).filter((name) => /\.jsonl(\.gz)?$/.test(name)).sort()
  const files: RecordingFile[] = []
  let bytes = 0
  for (const name of names) {
    const kind = kindOfName(name)
    // A compressed copy next to its original: the writer was interrupted.
    const copied = name.endsWith('.gz') && names.includes(name.slice(0, -3))
    if (kind === null || copied) continue
    const file = join(path, name)
    const { size } = await stat(file)
    bytes += size
    files.push({ path: file, kind, format: 'jsonl', firstAt: (await readHead(file)).firstAt })
  }
  if (files.length === 0) throw new Error(`no recording in the folder ${path}; ${EXPECTED}`)
  if (bytes === 0) throw new Error(`the recording in the folder ${path} is empty: ${files.length} file(s) without a byte`)
  return files
}

/** Name of a run whose lines have none: the folder. */
export async function recordingName(path: string): Promise<string> {
  return (await stat(path)).isDirectory() ? basename(resolve(path)) || 'recording' : 'recording'
}

async function describeFile(path: string, named: RecordingKind | null, stats: Stats): Promise<RecordingFile> {
  refuseOtherThanFile(path, stats)
  if (stats.size === 0) throw new Error(`the recording ${path} is empty; ${EXPECTED}`)
  const head = await readHead(path)
  const isCsv = /\.csv(\.gz)?$/i.test(path)
  if (isCsv || (head.kind === null && headerFault(head.firstLine) === null)) {
    const fault = headerFault(head.firstLine)
    if (fault !== null) throw new Error(`${path} is not a CSV log of nvidia-smi: ${fault}`)
    return { path, kind: 'gpu_metrics', format: 'nvidia-smi-csv', firstAt: Number.NEGATIVE_INFINITY }
  }
  const kind = named ?? head.kind
  if (kind === null) throw new Error(`${path} is not a recording: neither its name nor its first lines say what it holds; ${EXPECTED}`)
  return { path, kind, format: 'jsonl', firstAt: head.firstAt }
}

function kindOfName(name: string): RecordingKind | null {
  return RECORDING_KINDS.find((kind) => name.startsWith(kind)) ?? null
}

function kindOfLine(record: Readonly<Record<string, unknown>>): RecordingKind | null {
  if ('utilization_percent' in record || 'memory_used_mb' in record) return 'gpu_metrics'
  if ('step' in record) return 'training_metrics'
  if ('event' in record) return 'gpu_events'
  if ('id' in record && 'vendor' in record) return 'gpu_devices'
  return 'hostname' in record || 'ram_used_mb' in record ? 'host_metrics' : null
}

interface Head {
  readonly firstAt: number
  readonly kind: RecordingKind | null
  /** Not blank. */
  readonly firstLine: string
}

/** A pipe or a device would be waited for, for ever. */
async function openFile(path: string): Promise<FileHandle> {
  refuseOtherThanFile(path, await stat(path))
  return open(path)
}

async function readHead(path: string): Promise<Head> {
  const handle = await openFile(path)
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    const lines = headText(path, buffer.subarray(0, bytesRead)).split('\n')
    const firstLine = lines.find((line) => line.trim() !== '') ?? ''
    for (const line of lines) {
      const record = parseObject(line)
      const at = typeof record === 'string' ? null : parseTimestamp(record.timestamp)
      if (typeof record !== 'string' && at !== null) return { firstAt: at, kind: kindOfLine(record), firstLine }
    }
    return { firstAt: Number.NEGATIVE_INFINITY, kind: null, firstLine }
  } finally {
    await handle.close()
  }
}

function headText(path: string, bytes: Buffer): string {
  if (!path.endsWith('.gz')) return textOf(bytes)
  try {
    return textOf(gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: 64 * 1024 * 1024 }))
  } catch {
    // Not gzip: the line reader reports that.
    return ''
  }
}

/** A fault of the whole file; lines before it are used. */
export type FileFault = 'gzip_truncated' | 'gzip_corrupt'

export interface LineBlock {
  readonly lines: readonly string[]
  readonly tooLong: number
  /** The last line has no newline: the writer was interrupted, or has not finished. */
  readonly open: boolean
}

export async function* readLines(path: string, onFault: (fault: FileFault) => void): AsyncGenerator<LineBlock> {
  const handle = await openFile(path)
  try {
    let rest: Buffer = Buffer.alloc(0)
    let dropping = false
    for await (const bytes of asUtf8(path.endsWith('.gz') ? inflate(handle, onFault) : readBlocks(handle, BLOCK_BYTES))) {
      let block = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
      let tooLong = 0
      if (dropping) {
        const end = block.indexOf(10)
        if (end < 0) continue
        block = block.subarray(end + 1)
        dropping = false
      }
      const end = block.lastIndexOf(10)
      const lines = end < 0 ? [] : block.toString('utf8', 0, end).split('\n')
      rest = Buffer.from(block.subarray(end + 1))
      if (rest.length > MAX_LINE_CHARS) {
        rest = Buffer.alloc(0)
        dropping = true
        tooLong++
      }
      const kept = lines.some(isTooLong) ? lines.filter((line) => !isTooLong(line)) : lines
      yield { lines: kept, tooLong: tooLong + lines.length - kept.length, open: false }
    }
    if (rest.length > 0) yield { lines: [rest.toString()], tooLong: 0, open: true }
  } finally {
    await handle.close()
  }
}

function isTooLong(line: string): boolean {
  return line.length > MAX_LINE_CHARS
}

async function* readBlocks(handle: FileHandle, size: number): AsyncGenerator<Buffer> {
  for (;;) {
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(size), 0, size, null)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
  }
}

/** Inflates block by block: a piped stream would lose its buffer at a fault; here only the faulty block is lost. */
async function* inflate(handle: FileHandle, onFault: (fault: FileFault) => void): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: BLOCK_BYTES })
  let out: Buffer[] = []
  let failure: NodeJS.ErrnoException | null = null
  gunzip.on('data', (chunk: Buffer) => out.push(chunk))
  gunzip.on('error', (error) => {
    failure = error
  })
  const closed = new Promise<void>((done) => gunzip.once('close', done))
  const settle = (start: (done: () => void) => void) => Promise.race([closed, new Promise<void>(start)])
  try {
    for await (const block of readBlocks(handle, GZIP_BLOCK_BYTES)) {
      await settle((done) => gunzip.write(block, () => done()))
      if (out.length > 0) yield Buffer.concat(out)
      out = []
      if (failure !== null) break
    }
    if (failure === null) {
      gunzip.end()
      await closed
      if (out.length > 0) yield Buffer.concat(out)
    }
    if (failure !== null) onFault((failure as NodeJS.ErrnoException).code === 'Z_BUF_ERROR' ? 'gzip_truncated' : 'gzip_corrupt')
  } finally {
    gunzip.destroy()
  }
}
