/** The events of a file as columns: 25 bytes an event, more only where streams, pools or texts differ. */

const CHUNK_BITS = 16
const CHUNK = 1 << CHUNK_BITS
const CHUNK_MASK = CHUNK - 1

interface Chunk {
  readonly actions: Uint8Array
  /** Ids of the address table; -1 where the event has none. */
  readonly addresses: Int32Array
  readonly sizes: Float64Array
  /** Microseconds since 1970; NaN where the file has none. */
  readonly times: Float64Array
  readonly stacks: Int32Array
  /** Ids; null while all are 0. */
  streams: Uint16Array | null
  pools: Uint16Array | null
  metadata: Int32Array | null
}

export interface EventRow {
  action: number
  address: number
  size: number
  time: number
  stack: number
  stream: number
  pool: number
  metadata: number
}

export class EventColumns {
  readonly #chunks: Chunk[] = []
  count = 0

  push(row: EventRow): void {
    const at = this.count & CHUNK_MASK
    if (at === 0) this.#chunks.push(emptyChunk())
    const chunk = this.#chunks[this.#chunks.length - 1] as Chunk
    chunk.actions[at] = row.action
    chunk.addresses[at] = row.address
    chunk.sizes[at] = row.size
    chunk.times[at] = row.time
    chunk.stacks[at] = row.stack
    if (row.stream !== 0) {
      chunk.streams ??= new Uint16Array(CHUNK)
      chunk.streams[at] = row.stream
    }
    if (row.pool !== 0) {
      chunk.pools ??= new Uint16Array(CHUNK)
      chunk.pools[at] = row.pool
    }
    if (row.metadata !== 0) {
      chunk.metadata ??= new Int32Array(CHUNK)
      chunk.metadata[at] = row.metadata
    }
    this.count++
  }

  action(index: number): number {
    return this.#chunk(index).actions[index & CHUNK_MASK] as number
  }

  address(index: number): number {
    return this.#chunk(index).addresses[index & CHUNK_MASK] as number
  }

  size(index: number): number {
    return this.#chunk(index).sizes[index & CHUNK_MASK] as number
  }

  time(index: number): number {
    return this.#chunk(index).times[index & CHUNK_MASK] as number
  }

  stack(index: number): number {
    return this.#chunk(index).stacks[index & CHUNK_MASK] as number
  }

  stream(index: number): number {
    return this.#chunk(index).streams?.[index & CHUNK_MASK] ?? 0
  }

  pool(index: number): number {
    return this.#chunk(index).pools?.[index & CHUNK_MASK] ?? 0
  }

  metadata(index: number): number {
    return this.#chunk(index).metadata?.[index & CHUNK_MASK] ?? 0
  }

  #chunk(index: number): Chunk {
    return this.#chunks[index >>> CHUNK_BITS] as Chunk
  }
}

function emptyChunk(): Chunk {
  return {
    actions: new Uint8Array(CHUNK),
    addresses: new Int32Array(CHUNK),
    sizes: new Float64Array(CHUNK),
    times: new Float64Array(CHUNK),
    stacks: new Int32Array(CHUNK),
    streams: null,
    pools: null,
    metadata: null,
  }
}
