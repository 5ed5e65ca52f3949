/** A snapshot file, plain or gzip, to tables: in pieces, so that the file is never in memory as a whole. */
import { type FileHandle, open } from 'node:fs/promises'
import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { EXIT, Failure } from '../../core/failure.ts'
import { PickleFault } from './opcodes.ts'
import { PickleMachine } from './pickle-machine.ts'
import { SnapshotBuilder } from './snapshot-builder.ts'
import type { SnapshotLayout, SnapshotTables } from './snapshot-tables.ts'
import { KIND_BITS, KIND_MASK, SEGMENTS } from './tokens.ts'
import { ValueStack } from './value-stack.ts'

const CHUNK_BYTES = 1 << 20
/** Each piece that is unpacked is a buffer of its own, and waits for the garbage collector: smaller ones take 30 MB less. */
const UNPACKED_BYTES = 1 << 18

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
  const handle = await open(path)
  try {
    const stat = await handle.stat()
    if (stat.isDirectory()) throw new Failure(`${path} is a folder: give a snapshot file`, { exitCode: EXIT.usage })
    const magic = new Uint8Array(2)
    await handle.read(magic, 0, 2, 0)
    const pieces = piecesOf(handle, (read) => onProgress(stat.size === 0 ? 1 : read / stat.size))
    return await readPieces(magic[0] === 0x1f && magic[1] === 0x8b ? gunzipped(pieces) : pieces)
  } finally {
    await handle.close()
  }
}

async function readPieces(pieces: AsyncIterable<Uint8Array>): Promise<Snapshot> {
  const reader = new SnapshotReader()
  let damage: string | null = null
  try {
    for await (const piece of pieces) reader.write(piece)
  } catch (error) {
    if (!isDamagedGzip(error)) throw error
    damage = 'the gzip data is damaged or cut'
  }
  return reader.end(damage)
}

/** Two buffers take turns: one is filled while the other is read. What comes is valid until the next is asked for. */
async function* piecesOf(handle: FileHandle, onRead: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  let [buffer, other] = [new Uint8Array(CHUNK_BYTES), new Uint8Array(CHUNK_BYTES)]
  let position = 0
  let coming = handle.read(buffer, 0, CHUNK_BYTES, position)
  try {
    for (;;) {
      const { bytesRead } = await coming
      if (bytesRead === 0) return
      position += bytesRead
      onRead(position)
      const piece = buffer.subarray(0, bytesRead)
      ;[buffer, other] = [other, buffer]
      coming = handle.read(buffer, 0, CHUNK_BYTES, position)
      yield piece
    }
  } finally {
    await coming
  }
}

function gunzipped(pieces: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  // A stream keeps what it is given for a while: copies, not the buffers that take turns.
  const copies = Readable.from(
    mapped(pieces, (piece) => Buffer.from(piece)),
    { objectMode: false, highWaterMark: CHUNK_BYTES },
  )
  const gunzip = createGunzip({ chunkSize: UNPACKED_BYTES })
  // Errors come out of the iteration.
  pipeline(copies, gunzip, () => undefined)
  return gunzip
}

async function* mapped<From, To>(items: AsyncIterable<From>, change: (item: From) => To): AsyncGenerator<To> {
  for await (const item of items) yield change(item)
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
