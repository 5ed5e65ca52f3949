import { join } from 'node:path'
import { absent, type DiskFile, open, rm, stat } from '../core/disk.ts'
import { makeFolder } from '../core/make-folder.ts'
import { fileName, type StreamName } from './file-name.ts'
import type { Line } from './line-queue.ts'

const NEWLINE = 10
const NAMES_TO_TRY = 1000

export interface WriteOutcome {
  readonly written: number
  readonly fault: Error | null
}

/** A file of one stream, open for appending. It is ours alone: it did not exist before. */
export class LogFile {
  readonly name: string
  readonly openedAt: number
  readonly #path: string
  readonly #handle: DiskFile
  #bytes = 0
  #lines = 0
  #firstAt: number | null = null
  #lastAt: number | null = null
  #torn = false

  private constructor(dir: string, name: string, openedAt: number, handle: DiskFile) {
    this.name = name
    this.openedAt = openedAt
    this.#path = join(dir, name)
    this.#handle = handle
  }

  static async create(dir: string, stream: StreamName, at: number, pid: number | null): Promise<LogFile> {
    await makeFolder(dir, 0o750)
    for (let attempt = 1; attempt <= NAMES_TO_TRY; attempt++) {
      const name = fileName(stream, at, pid, attempt)
      const handle = await open(join(dir, name), 'ax', 0o640).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') return null
        throw error
      })
      if (!handle) continue
      if (await exists(join(dir, `${name}.gz`))) {
        await handle.close()
        await rm(join(dir, name))
        continue
      }
      return new LogFile(dir, name, at, handle)
    }
    throw new Error(`${NAMES_TO_TRY} files named ${fileName(stream, at, pid, 1)} and so on already exist in ${dir}: remove some of them`)
  }

  /** Goes on with a file that is ours, perhaps after a crash: what was cut off then stays a line of its own. */
  static async append(dir: string, name: string): Promise<LogFile> {
    await makeFolder(dir, 0o750)
    const handle = await open(join(dir, name), 'a', 0o640)
    const file = new LogFile(dir, name, 0, handle)
    file.#bytes = (await handle.stat()).size
    file.#torn = file.#bytes > 0
    return file
  }

  get bytes(): number {
    return this.#bytes
  }

  /** What this file holds, to say what is lost when it is removed. */
  get content(): { readonly lines: number; readonly from: number | null; readonly to: number | null } {
    return { lines: this.#lines, from: this.#firstAt, to: this.#lastAt }
  }

  /** False when somebody removed, moved or replaced the file. */
  inPlace(): Promise<boolean> {
    return this.#handle.isInPlace()
  }

  /** One write, continued where the system took less; a line torn by an earlier error is ended first. */
  async write(lines: readonly Line[]): Promise<WriteOutcome> {
    const healed = this.#torn ? '\n' : ''
    const buffer = Buffer.from(healed + lines.map((line) => line.text).join(''))
    let offset = 0
    let fault: Error | null = null
    while (offset < buffer.length && !fault) {
      try {
        const { bytesWritten } = await this.#handle.write(buffer, offset, buffer.length - offset)
        offset += bytesWritten
        if (bytesWritten === 0) fault = new Error(`the system wrote 0 of ${buffer.length - offset} bytes to ${this.#path}`)
      } catch (error) {
        fault = error as Error
      }
    }
    this.#bytes += offset
    if (offset > 0) this.#torn = buffer[offset - 1] !== NEWLINE
    let written = 0
    for (let end = healed.length; written < lines.length; written++) {
      const line = lines[written]
      if (!line) break
      end += line.bytes
      if (end > offset) break
      this.#firstAt ??= line.at
      this.#lastAt = line.at
    }
    this.#lines += written
    return { written, fault }
  }

  async close(): Promise<void> {
    try {
      await this.#handle.sync()
    } finally {
      await this.#handle.close()
    }
  }
}

/** The name of a compressed file is free again, but compressing a second file of that name would replace the first. */
async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(absent)) !== null
}
