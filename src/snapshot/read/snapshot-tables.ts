/** A memory snapshot as tables: what the file holds, each value once, nothing judged. */
import { EventColumns } from './event-columns.ts'
import { FIRST_TEXTS } from './keys.ts'
import { NumberTable } from './number-table.ts'
import { PickleFault } from './opcodes.ts'
import { FrameTable, StackTable } from './stack-table.ts'
import { TextTable } from './text-table.ts'

/** Ids of pools and streams are kept in 16 bits. */
export const MOST_POOLS = 65_535
/** Real events take 55 bytes and more. */
const LEAST_BYTES_PER_RECORD = 32
const FREE_RECORDS = 1 << 20

/** Records made one after the other. */
export interface Run {
  readonly first: number
  readonly count: number
}

export interface Segment {
  readonly device: number
  readonly address: number
  readonly totalBytes: number
  /** Id in `streams`. */
  readonly stream: number
  readonly isSmall: boolean
  /** Id in `pools`. */
  readonly pool: number
  readonly isExpandable: boolean
  readonly stack: number
  readonly blocks: Run
}

/** By block; a snapshot may have hundreds of thousands. */
export interface BlockColumns {
  readonly addresses: number[]
  /** Rounded up by the allocator. */
  readonly sizes: number[]
  /** What the program asked for; of an inactive block it says nothing. */
  readonly requested: number[]
  readonly states: number[]
  readonly stacks: number[]
}

export interface Annotation {
  readonly isStart: boolean
  readonly name: number
  readonly device: number
  readonly time: number
}

export type SettingValue = string | number | boolean | null

/** Texts, frames and the like have ids; `texts.text(id)` gives the text. */
export class SnapshotTables {
  readonly texts = new TextTable(FIRST_TEXTS)
  readonly frames = new FrameTable()
  readonly stacks = new StackTable()
  readonly addresses = new NumberTable()
  readonly streams = new NumberTable()
  /** `0.0` is the default pool. Id 0: the file does not say. */
  readonly pools: string[] = ['']
  readonly events = new EventColumns()
  /** Row of an oom event → bytes that the driver said were free. */
  readonly deviceFree = new Map<number, number>()
  readonly segments: Segment[] = []
  readonly blocks: BlockColumns = { addresses: [], sizes: [], requested: [], states: [], stacks: [] }
  readonly annotations: Annotation[] = []
  /** Actions of another version: the text's id → how many. */
  readonly unknownActions = new Map<number, number>()

  readonly #poolIds = new Map<string, number>()

  constructor() {
    this.streams.intern(0)
  }

  /** 0, as if the file did not say, once there are too many. */
  pool(major: number, minor: number): number {
    const name = `${major}.${minor}`
    const known = this.#poolIds.get(name)
    if (known !== undefined || this.pools.length >= MOST_POOLS) return known ?? 0
    const id = this.pools.push(name) - 1
    this.#poolIds.set(name, id)
    return id
  }

  /** What is kept has to be in proportion to the bytes that were read, and no table may outgrow what a training can make. */
  check(offset: number): void {
    const records = this.events.count + this.blocks.sizes.length
    if (records > FREE_RECORDS && records * LEAST_BYTES_PER_RECORD > offset)
      throw new PickleFault(`${records} events and blocks in ${offset} bytes: more than a memory snapshot has`, offset)
    for (const [what, count, most] of [
      ['segments', this.segments.length, 1 << 20],
      ['annotations', this.annotations.length, 1 << 22],
      ['frames', this.frames.count, 1 << 20],
      ['stacks', this.stacks.count, 1 << 20],
      ['frames of stacks', this.stacks.size, 1 << 26],
    ] as const)
      if (count > most) throw new PickleFault(`more than ${most} ${what} at byte ${offset}`, offset)
  }
}

/** What belongs to what. */
export interface SnapshotLayout {
  readonly segments: Run
  /** By device. */
  readonly traces: readonly Run[]
  readonly annotations: Run
  readonly hostSegments: Run
  readonly settings: ReadonlyMap<string, SettingValue>
}
