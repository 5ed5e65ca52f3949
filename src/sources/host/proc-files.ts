/** Reading the small files of /proc, into one buffer and without exceptions for what is simply not there. */
import { closeSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs'

const buffer = Buffer.allocUnsafe(64 * 1024)

/** `ENOENT`, `EACCES` …; what is not a system error is a fault of ours and goes on. */
export function errorCode(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (typeof code !== 'string') throw error
  return code
}

/** The first `limit` bytes; null when the file cannot be read, for whatever reason the system has. */
export function readProcFile(path: string, limit = buffer.length): string | null {
  const length = fill(path, limit)
  return length === null ? null : buffer.toString('utf8', 0, length)
}

export function readProcBytes(path: string): Buffer | null {
  const length = fill(path, buffer.length)
  return length === null ? null : Buffer.from(buffer.subarray(0, length))
}

export function readProcLink(path: string): string | null {
  try {
    return readlinkSync(path)
  } catch (error) {
    errorCode(error)
    return null
  }
}

export function listProcFolder(path: string): readonly string[] {
  try {
    return readdirSync(path)
  } catch (error) {
    errorCode(error)
    return []
  }
}

function fill(path: string, limit: number): number | null {
  let fd = -1
  try {
    fd = openSync(path, 'r')
    return readSync(fd, buffer, 0, limit, 0)
  } catch (error) {
    errorCode(error)
    return null
  } finally {
    if (fd >= 0) closeSync(fd)
  }
}
