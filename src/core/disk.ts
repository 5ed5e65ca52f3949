/** Node's file calls, one at a time, for everything in the log folder. See disk-lane.ts. */
import * as callbacks from 'node:fs'
import * as promises from 'node:fs/promises'
import { logLane } from './disk-lane.ts'
import { refuseOtherThanFile } from './system-file.ts'

type Call = (...args: never[]) => Promise<unknown>

function inTurn<F extends Call>(call: F): F {
  return ((...args: Parameters<F>) => logLane.run(String(args[0]), () => call(...args))) as F
}

export const link = inTurn(promises.link)
export const mkdir = inTurn(promises.mkdir)
export const readdir = inTurn(promises.readdir)
export const readFile = inTurn(async (path: string, encoding?: BufferEncoding) => {
  await refuseOther(path)
  return promises.readFile(path, encoding)
}) as typeof promises.readFile
export const rename = inTurn(promises.rename)
export const rm = inTurn(promises.rm)
export const stat = inTurn(promises.stat)
export const utimes = inTurn(promises.utimes)
export const writeFile = inTurn(async (...[path, ...rest]: Parameters<typeof promises.writeFile>) => {
  await refuseOther(String(path))
  return promises.writeFile(path, ...rest)
})

export async function open(path: string, flags: string, mode?: number): Promise<DiskFile> {
  const opened = logLane.run(path, async () => {
    // Exclusive: nothing is there.
    if (!flags.includes('x')) await refuseOther(path)
    return promises.open(path, flags, mode)
  })
  return new DiskFile(path, await opened)
}

/** A folder may be opened, to sync it. */
async function refuseOther(path: string): Promise<void> {
  const found = await promises.stat(path).catch(absent)
  if (found !== null && !found.isDirectory()) refuseOtherThanFile(path, found)
}

export interface FileIdentity {
  readonly ino: number
  readonly dev: number
}

/** How often a file that is kept open is compared with its path. */
export const IN_PLACE_MS = 5000

/** `found`: what is at the path; null: nothing. */
export function isSameFile(own: FileIdentity, found: FileIdentity | null): boolean {
  return found !== null && own.ino === found.ino && own.dev === found.dev
}

export function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
  throw error
}

export class DiskFile {
  readonly #path: string
  readonly #handle: promises.FileHandle
  #identity: FileIdentity | null = null

  constructor(path: string, handle: promises.FileHandle) {
    this.#path = path
    this.#handle = handle
  }

  write(bytes: Buffer, offset: number, length: number, position: number | null = null): Promise<{ readonly bytesWritten: number }> {
    return this.#run(() => this.#handle.write(bytes, offset, length, position))
  }

  /** As much as the buffer holds, from a place in the file. */
  read(into: Buffer, position: number): Promise<{ readonly bytesRead: number }> {
    return this.#run(() => this.#handle.read(into, 0, into.length, position))
  }

  writeFile(text: string): Promise<void> {
    return this.#run(() => this.#handle.writeFile(text))
  }

  /** False when somebody removed, moved or replaced it: nobody would find what is written to it. */
  async isInPlace(): Promise<boolean> {
    this.#identity ??= await this.stat()
    return isSameFile(this.#identity, await stat(this.#path).catch(absent))
  }

  stat(): Promise<callbacks.Stats> {
    return this.#run(() => this.#handle.stat())
  }

  sync(): Promise<void> {
    return this.#run(() => this.#handle.sync())
  }

  datasync(): Promise<void> {
    return this.#run(() => this.#handle.datasync())
  }

  truncate(bytes: number): Promise<void> {
    return this.#run(() => this.#handle.truncate(bytes))
  }

  close(): Promise<void> {
    return this.#run(() => this.#handle.close())
  }

  #run<T>(call: () => Promise<T>): Promise<T> {
    return logLane.run(this.#path, call)
  }
}

type Done = (error: NodeJS.ErrnoException | null, ...results: unknown[]) => void

function called(call: (...args: never[]) => void): (...args: unknown[]) => void {
  return (...args) => {
    const done = args.pop() as Done
    const path = typeof args[0] === 'string' ? args[0] : 'a file of the log'
    void logLane
      .run(
        path,
        () => new Promise<Parameters<Done>>((resolve) => call(...([...args, (...result: Parameters<Done>) => resolve(result)] as never[]))),
      )
      .then((result) => process.nextTick(done, ...result))
  }
}

/** For createReadStream and createWriteStream. */
export const STREAM_CALLS = {
  open: called(callbacks.open),
  read: called(callbacks.read),
  write: called(callbacks.write),
  writev: called(callbacks.writev),
  close: called(callbacks.close),
} as unknown as Pick<typeof callbacks, 'open' | 'read' | 'write' | 'writev' | 'close'>
