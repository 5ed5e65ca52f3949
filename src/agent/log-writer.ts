/** The file behind the log: written without anybody waiting for it, one write at a time, and bounded while the disk does not take it. */
import { type DiskFile, IN_PLACE_MS, open, rename, stat } from '../core/disk.ts'
import { logLane, STUCK_AT_END_MS } from '../core/disk-lane.ts'
import { makeFolder } from '../core/make-folder.ts'

const MOST_WAITING_CHARS = 1024 * 1024

export interface LogWriterOptions {
  readonly dir: string
  readonly path: string
  readonly maxBytes: number
  /** The line that says how many were lost. */
  readonly lossLine: (lost: number) => string
  /** The line that says that the file before it was removed. */
  readonly removedLine: () => string
  readonly lookEveryMs?: number
}

export class LogWriter {
  readonly #options: LogWriterOptions
  #waiting: string[] = []
  #waitingChars = 0
  #lost = 0
  #inFlight = 0
  #file: DiskFile | null = null
  #working: Promise<void> | null = null
  #checkedAt = Number.NEGATIVE_INFINITY
  #wasRemoved = false

  constructor(options: LogWriterOptions) {
    this.#options = options
  }

  write(line: string): void {
    if (this.#waitingChars + line.length > MOST_WAITING_CHARS) {
      this.#lost++
      return
    }
    this.#waiting.push(line)
    this.#waitingChars += line.length
    this.#working ??= this.#work().finally(() => {
      this.#working = null
    })
  }

  /** Everything written so far is in the file, or the disk does not answer: then how many lines are lost. */
  async close(): Promise<number> {
    try {
      await logLane.patiently(async () => {
        await this.#working
        await this.#file?.close()
      }, STUCK_AT_END_MS)
      return 0
    } catch {
      return this.#inFlight + this.#waiting.length + this.#lost
    }
  }

  async #work(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#waiting
      const lost = this.#lost
      this.#waiting = []
      this.#waitingChars = 0
      this.#lost = 0
      this.#inFlight = lines.length + lost
      try {
        const file = await this.#ready()
        const note = this.#wasRemoved ? this.#options.removedLine() : ''
        this.#wasRemoved = false
        const bytes = Buffer.from(note + lines.join('') + (lost === 0 ? '' : this.#options.lossLine(lost)))
        for (let done = 0; done < bytes.length; ) done += (await file.write(bytes, done, bytes.length - done)).bytesWritten
      } catch {
        // A disk that is full must not end the monitor: the store reports the fault, the log loses lines.
        this.#lost += this.#inFlight
        await this.#leave()
      }
      this.#inFlight = 0
    }
  }

  async #ready(): Promise<DiskFile> {
    const { dir, path, maxBytes } = this.#options
    if (this.#file && performance.now() - this.#checkedAt < (this.#options.lookEveryMs ?? IN_PLACE_MS)) return this.#file
    this.#checkedAt = performance.now()
    const size = await stat(path).then(
      (found) => found.size,
      () => null,
    )
    if (size !== null && size >= maxBytes) {
      await this.#leave()
      await rename(path, `${path}.1`)
    } else if (this.#file && !(await this.#file.isInPlace())) {
      this.#wasRemoved = true
      await this.#leave()
    }
    if (this.#file) return this.#file
    await makeFolder(dir, 0o750)
    this.#file = await open(path, 'a', 0o640)
    return this.#file
  }

  async #leave(): Promise<void> {
    const file = this.#file
    this.#file = null
    await file?.close().catch(() => undefined)
  }
}
