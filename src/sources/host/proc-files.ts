import { closeSync, openSync, readSync, statfsSync } from 'node:fs'
import { errorCode } from '../../core/system-file.ts'
import { smallBuffer as buffer, tryReadSmallFile } from '../small-file.ts'

/** The kernel rewrites such a file for every read from offset 0, so it need not be opened every time. */
export class KeptFile {
  readonly #path: string
  readonly #isKept: boolean
  #fd = -1

  /** `isKept`: the file is one of the kernel's (see isProc). */
  constructor(path: string, isKept: boolean) {
    this.#path = path
    this.#isKept = isKept
  }

  read(): string | null {
    if (!this.#isKept) return tryReadSmallFile(this.#path)
    if (this.#fd < 0) return this.#open() ? this.#read() : null
    // What is gone may be back: a process with the same PID.
    return this.#read() ?? (this.#open() ? this.#read() : null)
  }

  close(): void {
    if (this.#fd >= 0) closeSync(this.#fd)
    this.#fd = -1
  }

  #open(): boolean {
    try {
      this.#fd = openSync(this.#path, 'r')
      return true
    } catch (error) {
      errorCode(error)
      return false
    }
  }

  #read(): string | null {
    try {
      return buffer.toString('utf8', 0, readSync(this.#fd, buffer, 0, buffer.length, 0))
    } catch (error) {
      errorCode(error)
      this.close()
      return null
    }
  }
}

const PROC_SUPER_MAGIC = 0x9fa0

/** Whether a file or folder is the kernel's own, rather than a copy or a stand-in. */
export function isProc(path: string): boolean {
  try {
    return statfsSync(path).type === PROC_SUPER_MAGIC
  } catch (error) {
    errorCode(error)
    return false
  }
}
