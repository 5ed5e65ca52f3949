/** The file system that holds a folder. */
import { statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Reading } from '../../model.ts'
import { errorCode } from './proc-files.ts'

export interface DiskSpace {
  readonly diskTotalBytes: Reading
  /** What an ordinary user may still write. */
  readonly diskFreeBytes: Reading
}

export const NO_DISK: DiskSpace = { diskTotalBytes: null, diskFreeBytes: null }

/** Of the nearest parent that exists: the log folder is made only when the first line is written. */
export function readDiskSpace(folder: string): DiskSpace {
  for (let path = resolve(folder); ; path = dirname(path)) {
    try {
      const { blocks, bavail, bsize } = statfsSync(path)
      return { diskTotalBytes: blocks * bsize, diskFreeBytes: bavail * bsize }
    } catch (error) {
      errorCode(error)
      if (dirname(path) === path) return NO_DISK
    }
  }
}
