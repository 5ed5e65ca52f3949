/** Reading the small files of /proc and sysfs, into one buffer. */
import { closeSync, openSync, readSync } from 'node:fs'
import { errorCode } from '../core/system-file.ts'

/** Shared by all who read: use what is in it before the next reading. */
export const smallBuffer = Buffer.allocUnsafe(64 * 1024)

/** The first `limit` bytes; throws the system's error. */
export function readSmallFile(path: string, limit = smallBuffer.length): string {
  const fd = openSync(path, 'r')
  try {
    return smallBuffer.toString('utf8', 0, readSync(fd, smallBuffer, 0, limit, 0))
  } finally {
    closeSync(fd)
  }
}

export function tryReadSmallFile(path: string, limit?: number): string | null {
  try {
    return readSmallFile(path, limit)
  } catch (error) {
    errorCode(error)
    return null
  }
}
