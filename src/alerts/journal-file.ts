/**
 * The file of the journal. A line is handed to the system at once: from then on it outlives a kill of this process. That it outlasts a
 * power cut, too, takes sync(), which waits for the disk and may serve many lines.
 */
import { closeSync, fdatasync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { promisify } from 'node:util'

const datasync = promisify(fdatasync)

export class JournalFile {
  readonly #dir: string
  readonly #path: string
  #file: number | null = null
  #bytes = 0
  /** Appended while the file is being written anew: it has to be in the new one as well. */
  #meanwhile: Buffer[] | null = null

  constructor(dir: string, path: string) {
    this.#dir = dir
    this.#path = path
  }

  get isOpen(): boolean {
    return this.#file !== null
  }

  get bytes(): number {
    return this.#bytes
  }

  append(line: string): void {
    if (this.#file === null) throw new Error('the journal is not open')
    const bytes = Buffer.from(line)
    writeAll(this.#file, bytes)
    this.#bytes += bytes.length
    this.#meanwhile?.push(bytes)
  }

  async sync(): Promise<void> {
    if (this.#file !== null) await datasync(this.#file)
  }

  /** Waits for the disk: only for the start, when nothing is measured yet. */
  replaceNow(content: string): void {
    const bytes = Buffer.from(content)
    const file = openSync(this.#fresh, 'w', 0o600)
    try {
      writeAll(file, bytes)
      fsyncSync(file)
      this.#take(file, bytes.length)
    } catch (error) {
      closeSync(file)
      throw error
    }
    const folder = openSync(this.#dir, 'r')
    try {
      fsyncSync(folder)
    } finally {
      closeSync(folder)
    }
  }

  /** The old file goes on until the new one is complete, with what was appended meanwhile; the rename is what makes it count. */
  async replace(content: string): Promise<void> {
    const bytes = Buffer.from(content)
    const meanwhile: Buffer[] = []
    this.#meanwhile = meanwhile
    try {
      const fresh = await open(this.#fresh, 'w', 0o600)
      try {
        for (let done = 0; done < bytes.length; ) done += (await fresh.write(bytes, done)).bytesWritten
        await fresh.sync()
      } finally {
        await fresh.close()
      }
      const file = openSync(this.#fresh, 'a')
      try {
        const rest = Buffer.concat(meanwhile)
        writeAll(file, rest)
        this.#take(file, bytes.length + rest.length)
      } catch (error) {
        closeSync(file)
        throw error
      }
    } finally {
      this.#meanwhile = null
    }
    const folder = await open(this.#dir, 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file)
    this.#file = null
  }

  get #fresh(): string {
    return `${this.#path}.tmp`
  }

  #take(file: number, bytes: number): void {
    renameSync(this.#fresh, this.#path)
    this.close()
    this.#file = file
    this.#bytes = bytes
  }
}

/** A write may take less than it was given. */
function writeAll(file: number, bytes: Buffer): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done)
}
