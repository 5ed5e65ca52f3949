/** Reading the small files of /proc, into one buffer and without exceptions for what is simply not there. */
import { closeSync, openSync, readdirSync, readlinkSync, readSync, statfsSync } from 'node:fs'

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

/** The kernel writes such a file anew for every reading from its beginning, so it need not be opened every time. */
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
    if (!this.#isKept) return readProcFile(this.#path)
    if (this.#fd < 0) return this.#open() ? this.#read() : null
    // What is gone may be there anew: a process of the same number.
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
