/** Node's file calls, one at a time, for everything in the log folder. See disk-lane.ts. */
import * as callbacks from 'node:fs'
import * as promises from 'node:fs/promises'
import { logLane } from './disk-lane.ts'

type Call = (...args: never[]) => Promise<unknown>

function inTurn<F extends Call>(call: F): F {
  return ((...args: Parameters<F>) => logLane.run(String(args[0]), () => call(...args))) as F
}

export const link = inTurn(promises.link)
export const mkdir = inTurn(promises.mkdir)
export const readdir = inTurn(promises.readdir)
export const readFile = inTurn(promises.readFile)
export const rename = inTurn(promises.rename)
export const rm = inTurn(promises.rm)
export const stat = inTurn(promises.stat)
export const utimes = inTurn(promises.utimes)
export const writeFile = inTurn(promises.writeFile)

export async function open(path: string, flags: string, mode?: number): Promise<DiskFile> {
  return new DiskFile(path, await logLane.run(path, () => promises.open(path, flags, mode)))
}

export class DiskFile {
  readonly #path: string
  readonly #handle: promises.FileHandle

  constructor(path: string, handle: promises.FileHandle) {
    this.#path = path
    this.#handle = handle
  }

  write(bytes: Buffer, offset: number, length: number, position: number | null = null): Promise<{ readonly bytesWritten: number }> {
    return this.#run(() => this.#handle.write(bytes, offset, length, position))
  }

  writeFile(text: string): Promise<void> {
    return this.#run(() => this.#handle.writeFile(text))
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
