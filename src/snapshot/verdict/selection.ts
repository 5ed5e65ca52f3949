/** Which allocations are looked at: all, or those of a stream, a pool, or with a stack that matches. */
import type { Device } from './device.ts'
import { type Lifetimes, NONE } from './lifetimes.ts'
import { SegmentPools } from './segment-pools.ts'
import type { StackWordsTable } from './stack-words.ts'

export interface SelectionOptions {
  /** As PyTorch writes it: 0, or the address of the stream. */
  readonly stream?: number | undefined
  /** `0.1` */
  readonly pool?: string | undefined
  /** Of a frame, as `file:line name`, or of the text that the program set as metadata. */
  readonly match?: RegExp | undefined
}

export class Selection {
  /** Nothing is left out. */
  readonly isAll: boolean
  readonly #device: Device
  readonly #options: SelectionOptions
  readonly #words: StackWordsTable
  readonly #pools: SegmentPools
  readonly #byStack = new Map<number, boolean>()
  readonly #byMetadata = new Map<number, boolean>()

  constructor(device: Device, words: StackWordsTable, options: SelectionOptions = {}) {
    this.#device = device
    this.#words = words
    this.#options = options
    this.#pools = new SegmentPools(device)
    this.isAll = options.stream === undefined && options.pool === undefined && options.match === undefined
  }

  hasAlloc(index: number): boolean {
    if (this.isAll) return true
    const { trace, tables } = this.#device
    const address = () => tables.addresses.value(trace.address(index))
    return this.#has(trace.stream(index), trace.stack(index), trace.metadata(index), () =>
      this.#pools.ofEvent(trace.pool(index), address()),
    )
  }

  hasEarly({ early }: Lifetimes, block: number): boolean {
    if (this.isAll) return true
    const pool = () => this.#pools.ofEvent(0, early.addresses[block] as number)
    return this.#has(early.streams[block] as number, early.stacks[block] as number, 0, pool)
  }

  /** What ends with this event, if it is looked at. */
  freedBytes(lifetimes: Lifetimes, index: number): number {
    const partner = lifetimes.partners[index] as number
    if (partner === NONE) return 0
    if (partner >= 0) return this.hasAlloc(partner) ? lifetimes.trace.size(partner) : 0
    return this.hasEarly(lifetimes, -2 - partner) ? (lifetimes.early.sizes[-2 - partner] as number) : 0
  }

  bytesBefore(lifetimes: Lifetimes): number {
    if (this.isAll) return lifetimes.baseBytes
    let bytes = 0
    for (const [block, size] of lifetimes.early.sizes.entries()) if (this.hasEarly(lifetimes, block)) bytes += size
    return bytes
  }

  #has(stream: number, stack: number, metadata: number, pool: () => string): boolean {
    const { stream: wantedStream, pool: wantedPool, match } = this.#options
    if (wantedStream !== undefined && this.#device.tables.streams.value(stream) !== wantedStream) return false
    if (wantedPool !== undefined && pool() !== wantedPool) return false
    return match === undefined || this.#matches(match, stack, metadata)
  }

  #matches(match: RegExp, stack: number, metadata: number): boolean {
    let found = this.#byStack.get(stack)
    if (found === undefined) {
      found = this.#words.framesOf(stack).some(({ file, line, name }) => match.test(`${file}:${line} ${name}`))
      this.#byStack.set(stack, found)
    }
    if (found || metadata === 0) return found
    let isMeant = this.#byMetadata.get(metadata)
    if (isMeant === undefined) {
      isMeant = match.test(this.#device.tables.texts.text(metadata))
      this.#byMetadata.set(metadata, isMeant)
    }
    return isMeant
  }
}
