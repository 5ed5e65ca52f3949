/** Reads the files of earlier runs slowly enough that nobody notices. */
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { createGunzip } from 'node:zlib'
import { readdir, STREAM_CALLS, stat } from '../core/disk.ts'
import { parseFileName, type StreamName } from './file-name.ts'

const MAX_LINE_CHARS = 1024 * 1024
/** Works this long, then rests twice as long: a third of a core at most, and no tick waits for it. */
const WORK_MS = 10
const REST_MS = 20

export interface PastFile {
  readonly path: string
  readonly name: string
  readonly bytes: number
  /** Where to start: more than 0 when only the end of a large file fits. */
  readonly start: number
}

/** The newest first, as far as they fit into `maxBytes`; those last written before `since` are skipped. */
export async function choosePastFiles(dir: string, stream: StreamName, since: number, maxBytes: number): Promise<PastFile[]> {
  const names: string[] = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const candidates = names.flatMap((name) => {
    const own = parseFileName(name)
    // A crash between the two last steps of compressing leaves both, with the same lines.
    const twin = own?.compressed && names.includes(name.slice(0, -'.gz'.length))
    return own?.stream === stream && !twin ? [{ name, own }] : []
  })
  candidates.sort((a, b) => b.own.openedAt - a.own.openedAt || (a.name < b.name ? 1 : -1))
  const chosen: PastFile[] = []
  let room = maxBytes
  for (const { name, own } of candidates) {
    const path = join(dir, name)
    // Compressed and removed since the folder was listed: its time is then a gap.
    const stats = await stat(path).catch(() => null)
    if (!stats?.isFile() || stats.mtimeMs < since) continue
    if (stats.size > room && own.compressed) break
    const size = Math.min(stats.size, room)
    chosen.push({ path, name, bytes: size, start: stats.size - size })
    room -= size
    if (room === 0) break
  }
  return chosen
}

/** Line by line, with pauses; throws when the file is damaged or cannot be read. */
export async function* pacedLines(chosen: PastFile): AsyncGenerator<string> {
  const { path, start } = await whereItIsNow(chosen)
  const file = createReadStream(path, { fs: STREAM_CALLS, start })
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

/** The store compresses closed files, perhaps after they were chosen. */
async function whereItIsNow({ path, start }: PastFile): Promise<{ readonly path: string; readonly start: number }> {
  const isMoved = start === 0 && !path.endsWith('.gz') && (await stat(path).catch(() => null)) === null
  return { path: isMoved ? `${path}.gz` : path, start }
}
