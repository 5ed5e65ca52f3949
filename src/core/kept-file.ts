/** A small file that is always rewritten as a whole, atomically. */
import { dirname } from 'node:path'
import { rename, writeFile } from './disk.ts'
import { makeFolder } from './make-folder.ts'

export interface KeptFileOptions {
  readonly mode: number
  readonly folderMode: number
  /** Wait for the disk, so that it survives a power cut. */
  readonly flush: boolean
}

export class KeptFile {
  readonly path: string
  readonly #options: KeptFileOptions
  #writing: Promise<void> | null = null
  #next: Promise<void> | null = null
  #text: () => string = () => ''

  constructor(path: string, options: KeptFileOptions) {
    this.path = path
    this.#options = options
  }

  /** One write at a time; requests meanwhile become one more, with the newest text. */
  save(text: () => string): Promise<void> {
    this.#text = text
    if (!this.#writing) return this.#start()
    this.#next ??= this.#writing.catch(() => undefined).then(() => this.#start())
    return this.#next
  }

  #start(): Promise<void> {
    this.#next = null
    this.#writing = this.#write().finally(() => {
      this.#writing = null
    })
    return this.#writing
  }

  async #write(): Promise<void> {
    const { mode, folderMode, flush } = this.#options
    const text = this.#text()
    await makeFolder(dirname(this.path), folderMode)
    const part = `${this.path}.tmp`
    await writeFile(part, text, { mode, flush })
    await rename(part, this.path)
  }
}
