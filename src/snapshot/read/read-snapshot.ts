/** A snapshot file, plain or gzip, to tables: in pieces, so that the file is never in memory as a whole. */
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createGunzip } from 'node:zlib'
import { EXIT, Failure } from '../../core/failure.ts'
import { PickleFault } from './opcodes.ts'
import { PickleMachine } from './pickle-machine.ts'
import { SnapshotBuilder } from './snapshot-builder.ts'
import type { SnapshotLayout, SnapshotTables } from './snapshot-tables.ts'
import { KIND_BITS, KIND_MASK, SEGMENTS } from './tokens.ts'
import { ValueStack } from './value-stack.ts'

const CHUNK_BYTES = 1 << 20

export interface Snapshot {
  readonly tables: SnapshotTables
  readonly layout: SnapshotLayout
  /** After gunzip. */
  readonly bytes: number
  /** Why reading ended before the end of the pickle; null where it did not. */
  readonly cut: string | null
}

/** Takes the bytes of a pickle in pieces and gives its tables. */
export class SnapshotReader {
  readonly #stack = new ValueStack()
  readonly #builder = new SnapshotBuilder(this.#stack)
  readonly #machine = new PickleMachine(this.#stack, this.#builder)

  write(chunk: Uint8Array): void {
    this.#machine.write(chunk)
  }

  /** `damage`: why no more bytes came, where that is not the end of the file. */
  end(damage: string | null = null): Snapshot {
    this.#machine.end()
    const { tables } = this.#builder
    const layout = this.#builder.layout ?? this.#bareSegments()
    const { offset, isWhole } = this.#machine
    if (layout === null)
      throw new PickleFault(
        isWhole
          ? 'this pickle is no memory snapshot: expected a dict with "segments" and "device_traces"'
          : `it ends at byte ${offset}, before the first whole record of a memory snapshot`,
        offset,
      )
    const cut = isWhole ? null : (damage ?? `the file ends at byte ${offset}, before the end of the pickle`)
    return { tables, layout, bytes: offset, cut }
  }

  /** What torch.cuda.memory_snapshot() gives: the list of segments alone. */
  #bareSegments(): SnapshotLayout | null {
    const value = this.#stack.tokens[0] as number
    if (this.#stack.top !== 1 || (value & KIND_MASK) !== SEGMENTS) return null
    const none = { first: 0, count: 0 }
    const segments = { first: value >>> KIND_BITS, count: this.#stack.numbers[0] as number }
    return { segments, traces: [], annotations: none, hostSegments: none, settings: new Map() }
  }
}

/** `onProgress`: share of the file that was read, 0 to 1. */
export async function readSnapshot(path: string, onProgress: (share: number) => void = () => undefined): Promise<Snapshot> {
  try {
    return await readFile(path, onProgress)
  } catch (cause) {
    if (cause instanceof PickleFault) throw unreadable(path, cause)
    const { code, message } = cause as NodeJS.ErrnoException
    if (code === undefined) throw cause
    throw new Failure(`${path} cannot be read: ${code === 'ENOENT' ? 'there is no such file' : message}`, {
      exitCode: EXIT.noSource,
      cause,
    })
  }
}

async function readFile(path: string, onProgress: (share: number) => void): Promise<Snapshot> {
  const { size, isGzip } = await lookAt(path)
  const file = createReadStream(path, { highWaterMark: CHUNK_BYTES })
  let read = 0
  file.on('data', (chunk) => {
    read += chunk.length
    onProgress(size === 0 ? 1 : read / size)
  })
  const reader = new SnapshotReader()
  const bytes = isGzip ? file.pipe(createGunzip({ chunkSize: CHUNK_BYTES })) : file
  // pipe() does not pass on the errors of what it reads from.
  if (bytes !== file) file.on('error', (error) => bytes.destroy(error))
  let damage: string | null = null
  try {
    for await (const chunk of bytes) reader.write(chunk as Uint8Array)
  } catch (error) {
    if (!isDamagedGzip(error)) throw error
    damage = 'the gzip data is damaged or cut'
  } finally {
    file.destroy()
  }
  return reader.end(damage)
}

async function lookAt(path: string): Promise<{ size: number; isGzip: boolean }> {
  const handle = await open(path)
  try {
    const stat = await handle.stat()
    if (stat.isDirectory()) throw new Failure(`${path} is a folder: give a snapshot file`, { exitCode: EXIT.usage })
    const magic = new Uint8Array(2)
    await handle.read(magic, 0, 2, 0)
    return { size: stat.size, isGzip: magic[0] === 0x1f && magic[1] === 0x8b }
  } finally {
    await handle.close()
  }
}

function isDamagedGzip(error: unknown): boolean {
  return typeof (error as NodeJS.ErrnoException).code === 'string' && /^Z_/.test((error as NodeJS.ErrnoException).code ?? '')
}

function unreadable(path: string, cause: PickleFault): Failure {
  return new Failure(`${path} cannot be read as a memory snapshot: ${cause.message}`, {
    exitCode: EXIT.noSource,
    hint: 'Expected a file of torch.cuda.memory._dump_snapshot(), plain or gzip. Nothing in it was run.',
    cause,
  })
}
