import { createReadStream, createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { open, rename, rm, STREAM_CALLS, stat, utimes } from '../core/disk.ts'
import { LEFTOVER_SUFFIX } from './file-name.ts'

/** Replaces `path` with `path`.gz; one of the two is always whole on disk. False: somebody wrote to it meanwhile, and it was left alone. */
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
