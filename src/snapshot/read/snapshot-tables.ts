/** A memory snapshot as tables: what the file holds, each value once, nothing judged. */
import { EventColumns } from './event-columns.ts'
import { FIRST_TEXTS } from './keys.ts'
import { NumberTable } from './number-table.ts'
import { FrameTable, StackTable } from './stack-table.ts'
import { TextTable } from './text-table.ts'

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

  constructor() {
    this.streams.intern(0)
  }

  pool(major: number, minor: number): number {
    const name = `${major}.${minor}`
    const known = this.pools.indexOf(name)
    return known >= 0 ? known : this.pools.push(name) - 1
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
