import { statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Reading } from '../../core/model.ts'
import { errorCode } from '../../core/system-file.ts'

export interface DiskSpace {
  readonly diskTotalBytes: Reading
  /** What an ordinary user may still write. */
  readonly diskFreeBytes: Reading
}

export const NO_DISK: DiskSpace = { diskTotalBytes: null, diskFreeBytes: null }

const INTERVAL_MS = 10_000
/** An answer that has not come by now says that the one before holds no longer. */
const SILENT_MS = 15_000
const FIRST_ANSWER_MS = 1000

/** Of the nearest parent that exists: the log folder is made only when the first line is written. */
export async function readDiskSpace(folder: string): Promise<DiskSpace> {
  for (let path = resolve(folder); ; path = dirname(path)) {
    try {
      const { blocks, bavail, bsize } = await statfs(path)
      return { diskTotalBytes: blocks * bsize, diskFreeBytes: bavail * bsize }
    } catch (error) {
      errorCode(error)
      if (dirname(path) === path) return NO_DISK
    }
  }
}

/** One question at a time, outside the samples: a network disk whose server is gone never answers. */
export class DiskWatch {
  readonly #ask: () => Promise<DiskSpace>
  #last: DiskSpace = NO_DISK
  #isAsking = false
  /** The first question has no time of its own: it counts from the first sample. */
  #askedMs: number | null = null

  constructor(ask: () => Promise<DiskSpace>) {
    this.#ask = ask
  }

  /** For the first sample; waits a second at most. */
  async first(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((done) => {
      timer = setTimeout(done, FIRST_ANSWER_MS)
    })
    await Promise.race([this.#question(), late])
    clearTimeout(timer)
  }

  read(nowMs: number): DiskSpace {
    let asked = this.#askedMs ?? nowMs
    if (!this.#isAsking && nowMs - asked >= INTERVAL_MS) {
      asked = nowMs
      void this.#question()
    }
    this.#askedMs = asked
    return this.#isAsking && nowMs - asked > SILENT_MS ? NO_DISK : this.#last
  }

  async #question(): Promise<void> {
    this.#isAsking = true
    try {
      this.#last = await this.#ask()
    } finally {
      this.#isAsking = false
    }
  }
}
