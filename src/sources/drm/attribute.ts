import { closeSync, existsSync, openSync, readSync } from 'node:fs'
import { errorCode } from '../../core/system-file.ts'
import { smallBuffer as buffer } from '../small-file.ts'

/** Failures cost an exception each: a file that failed is asked again only after this long. */
const RETRY_MS = 5000

/** A sysfs file kept open: a read at offset 0 gives a new value, and unlike a device node it does not keep the card awake. */
export class Attribute {
  readonly path: string
  /** The system's code when the last read failed. */
  code: string | null = null
  #fd = -1
  #retryAt = Number.NEGATIVE_INFINITY

  constructor(path: string) {
    this.path = path
  }

  readText(monotonicMs: number): string | null {
    const length = this.#fill(monotonicMs)
    return length === null ? null : buffer.toString('latin1', 0, length)
  }

  /** A view of shared memory: use it before the next read. */
  readBytes(monotonicMs: number): Buffer | null {
    const length = this.#fill(monotonicMs)
    return length === null ? null : buffer.subarray(0, length)
  }

  close(): void {
    if (this.#fd >= 0) closeSync(this.#fd)
    this.#fd = -1
  }

  #fill(monotonicMs: number): number | null {
    if (monotonicMs < this.#retryAt) return null
    const kept = this.#fd >= 0
    try {
      if (!kept) this.#fd = openSync(this.path, 'r')
      const length = readSync(this.#fd, buffer, 0, buffer.length, 0)
      this.code = null
      return length
    } catch (error) {
      this.code = errorCode(error)
      this.close()
      // After a reload of the driver the old descriptor is dead but the path may be alive.
      if (kept && this.code === 'ENODEV') return this.#fill(monotonicMs)
      this.#retryAt = monotonicMs + RETRY_MS
      return null
    }
  }
}

/** null where the card has no such file. */
export function attribute(path: string): Attribute | null {
  return existsSync(path) ? new Attribute(path) : null
}
