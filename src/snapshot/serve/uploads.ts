/** Snapshots that people send to the agent: kept in a temporary folder that only the agent reads, bounded, and removed with the agent. */
import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { lstat, mkdtemp, open, readdir, rm, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

export interface Upload {
  readonly id: string
  readonly name: string
  readonly path: string
  readonly bytes: number
  /** So much has come. */
  received: number
  touchedAt: number
  isBusy: boolean
}

export type TakeOutcome = 'taken' | 'busy' | 'wrong_offset' | 'too_large' | 'cut_off'

export interface UploadsOptions {
  /** Of all uploads together. */
  readonly mostBytes: number
  readonly now?: () => number
  readonly folder?: string
}

const MOST_UPLOADS = 8
/** One that stays unfinished for so long is given up. */
const UNFINISHED_MS = 10 * 60_000
/** Of an agent that was killed: nobody else's folder is untouched for so long and without a process. */
const LEFT_MS = 60 * 60_000
const FOLDER = /^gpuwarden-uploads-(\d+)-/

export class Uploads {
  readonly #options: UploadsOptions
  readonly #now: () => number
  readonly #uploads = new Map<string, Upload>()
  #folder: Promise<string> | null = null
  #isClosed = false

  constructor(options: UploadsOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  get mostBytes(): number {
    return this.#options.mostBytes
  }

  /** Newest first. */
  list(): readonly Upload[] {
    return [...this.#uploads.values()].reverse()
  }

  find(id: string): Upload | null {
    return this.#uploads.get(id) ?? null
  }

  /** Makes room by removing the oldest; null: others are still coming in. `onRemoved`: called for what had to go. */
  async begin(name: string, bytes: number, onRemoved: (id: string) => void): Promise<Upload | null> {
    for (const { id, received, bytes: all, touchedAt, isBusy } of [...this.#uploads.values()])
      if (received < all && !isBusy && this.#now() - touchedAt > UNFINISHED_MS) await this.#drop(id, onRemoved)
    while (this.#uploads.size >= MOST_UPLOADS || this.#total() + bytes > this.#options.mostBytes) {
      const oldest = [...this.#uploads.values()].find(({ received, bytes: all }) => received >= all)
      if (!oldest) return null
      await this.#drop(oldest.id, onRemoved)
    }
    const id = `u${randomBytes(12).toString('hex')}`
    const upload: Upload = { id, name, bytes, path: join(await this.#place(), id), received: 0, touchedAt: this.#now(), isBusy: false }
    // Registered before the file is made, so that another one that begins now counts it.
    this.#uploads.set(id, upload)
    await (await open(upload.path, 'wx', 0o600)).close()
    if (this.#isClosed) await this.close()
    return upload
  }

  /** Adds a piece; what came of one that was cut off is taken back, so that it can be sent again. */
  async take(upload: Upload, offset: number, piece: Readable, limitBytes: number): Promise<TakeOutcome> {
    if (upload.isBusy) return 'busy'
    if (offset !== upload.received) return 'wrong_offset'
    upload.isBusy = true
    upload.touchedAt = this.#now()
    const most = Math.min(limitBytes, upload.bytes - offset)
    let [size, isTooLarge] = [0, false]
    const bounded = async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        size += chunk.length
        if (size > most) {
          isTooLarge = true
          return
        }
        yield chunk
      }
    }
    try {
      // Not through pipeline(): it would destroy the connection on which the answer still has to be sent.
      await pipeline(bounded(piece.iterator({ destroyOnReturn: false })), createWriteStream(upload.path, { flags: 'r+', start: offset }))
    } catch {
      await truncate(upload.path, offset).catch(() => undefined)
      return 'cut_off'
    } finally {
      upload.isBusy = false
      upload.touchedAt = this.#now()
    }
    if (isTooLarge) {
      await truncate(upload.path, offset)
      return 'too_large'
    }
    upload.received += size
    return 'taken'
  }

  async remove(id: string): Promise<void> {
    await this.#drop(id, () => undefined)
  }

  /** Removes everything. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#uploads.clear()
    const folder = await this.#folder?.catch(() => null)
    if (folder) await rm(folder, { recursive: true, force: true })
  }

  /** What agents that were killed left behind. */
  async removeLeftovers(): Promise<void> {
    const folder = this.#options.folder ?? tmpdir()
    for (const name of await readdir(folder)) {
      const pid = Number(FOLDER.exec(name)?.[1] ?? 0)
      if (pid === 0 || isAlive(pid)) continue
      const stat = await lstat(join(folder, name)).catch(() => null)
      if (stat?.isDirectory() && stat.uid === process.getuid?.() && this.#now() - stat.mtimeMs > LEFT_MS)
        await rm(join(folder, name), { recursive: true, force: true })
    }
  }

  #place(): Promise<string> {
    this.#folder ??= mkdtemp(join(this.#options.folder ?? tmpdir(), `gpuwarden-uploads-${process.pid}-`))
    return this.#folder
  }

  #total(): number {
    return [...this.#uploads.values()].reduce((sum, { bytes }) => sum + bytes, 0)
  }

  async #drop(id: string, onRemoved: (id: string) => void): Promise<void> {
    const upload = this.#uploads.get(id)
    if (!upload) return
    this.#uploads.delete(id)
    onRemoved(id)
    await rm(upload.path, { force: true })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
