/**
 * Lines on their way to the journal, in shared memory until they are in its file: neither a kill in that moment loses them, nor one while the
 * disk is full. Shared memory always answers, so this may be synchronous; the file may be on a disk that does not. It is gone after a reboot, as
 * is what the system had not written.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** A service has a runtime folder that outlives a restart, and systemd removes what it leaves in shared memory. */
const MEMORY_FOLDER = process.env.RUNTIME_DIRECTORY?.split(':')[0] || '/dev/shm'
const LARGEST_BYTES = 4 * 1024 * 1024

export class UnwrittenLines {
  readonly #path: string
  #file: number | null = null
  #bytes = 0
  #isUsable = true

  /** `id`: of the journal that the lines belong to. */
  constructor(id: string, folder = MEMORY_FOLDER) {
    this.#path = join(folder, `gpuwarden-alerts-${id}`)
  }

  /** What a killed agent left: the latest lines of the journal, some perhaps in its file already. */
  read(): string {
    return this.#attempt(() => {
      const file = open(this.#path, constants.O_RDONLY)
      try {
        const text = readFileSync(file, 'utf8')
        this.#bytes = text.length
        return text
      } finally {
        closeSync(file)
      }
    }, '')
  }

  /** False: there is no room for it. */
  add(line: string): boolean {
    if (this.#bytes + line.length > LARGEST_BYTES) return false
    if (this.#isUsable)
      this.#attempt(() => {
        this.#file ??= open(this.#path, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND)
        this.#bytes += writeSync(this.#file, line)
      }, undefined)
    return true
  }

  /** A line that has no room is given up, and all others with it: older ones alone would be taken for the latest. */
  replace(line: string): void {
    this.clear()
    this.add(line)
  }

  /** All of them are in the file. */
  clear(): void {
    if (this.#file === null && this.#bytes === 0) return
    if (this.#file !== null) closeSync(this.#file)
    this.#file = null
    this.#bytes = 0
    this.#attempt(() => unlinkSync(this.#path), undefined)
  }

  /** It is a second net: without it alerts are kept as before. */
  #attempt<T>(work: () => T, otherwise: T): T {
    try {
      return work()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#isUsable = false
      return otherwise
    }
  }
}

/** Everybody may write to shared memory: only a file that is ours counts. */
function open(path: string, flags: number): number {
  const file = openSync(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600)
  const stats = fstatSync(file)
  if (stats.isFile() && stats.nlink === 1 && stats.uid === process.geteuid?.()) return file
  closeSync(file)
  throw new Error(`${path} is not ours`)
}
