import { createReadStream, createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { open, rename, rm, STREAM_CALLS, stat, utimes } from '../core/disk.ts'
import { LEFTOVER_SUFFIX } from './file-name.ts'

/**
 * Puts `path`.gz in the place of `path`, with its time of last change. At every moment at least one of the two is whole on disk.
 * Returns false, and leaves the original alone, when somebody wrote to it meanwhile.
 */
export async function compressFile(path: string, signal: AbortSignal): Promise<boolean> {
  const temporary = `${path}${LEFTOVER_SUFFIX}`
  const before = await stat(path)
  signal.throwIfAborted()
  try {
    const fs = STREAM_CALLS
    await pipeline(createReadStream(path, { fs }), createGzip(), createWriteStream(temporary, { fs, mode: before.mode & 0o777 }), {
      signal,
    })
    const handle = await open(temporary, 'r+')
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
    await utimes(temporary, before.atime, before.mtime)
    const after = await stat(path)
    if (after.size !== before.size || after.mtimeMs !== before.mtimeMs) {
      await rm(temporary)
      return false
    }
    await rename(temporary, `${path}.gz`)
    await rm(path)
    return true
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}
