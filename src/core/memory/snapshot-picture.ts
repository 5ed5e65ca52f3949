/** What is drawn of a PyTorch memory snapshot: made by the analysis, drawn by the HTML file and by the page. */

/** Columns of a stretch of events: each shows the moment in it at which most was in use. Lists are differences, see `sumsOf`. */
export interface BandColumns {
  /** Events from `from` up to, not including, `to`; cut into as many equal parts as there are columns. */
  readonly from: number
  readonly to: number
  /** Event after which the columns are as they are shown; -1: before the first. */
  readonly highestAt: readonly number[]
  /** Since the first event, at that moment; null where the file has no times. */
  readonly timesUs: readonly number[] | null
  /** By band, bytes at that moment: together exactly what was in use. */
  readonly bands: readonly (readonly number[])[]
  /** Least in use within the column. */
  readonly least: readonly number[]
  /** Most reserved within the column. */
  readonly reserved: readonly number[]
}

export interface BandStack {
  /** The most that it had in use at one time. */
  readonly bytes: number
  /** Outermost first. */
  readonly frames: readonly string[]
}

export interface Band {
  readonly name: string
  /** The most that it had in use at one time. */
  readonly mostBytes: number
  /** Largest first. */
  readonly stacks: readonly BandStack[]
}

/** The last band holds what has none of its own. */
export interface BandPicture {
  readonly bands: readonly Band[]
  readonly columns: BandColumns
}

export const BAND_KINDS = ['line', 'category'] as const
export type BandKind = (typeof BAND_KINDS)[number]

export interface FlameNode {
  readonly name: string
  readonly bytes: number
  readonly children: readonly FlameNode[]
}

export interface SegmentPicture {
  /** Hexadecimal. */
  readonly address: string
  readonly bytes: number
  readonly liveBytes: number
  readonly blocks: number
  /** `0.0`: the default one. */
  readonly pool: string
  readonly stream: number
  readonly isSmall: boolean
  readonly isExpandable: boolean
  /** Little in it is in use, and without that the request that is looked at would fit. */
  readonly isPinned: boolean
  /** Offset, bytes and position in `lines` of what is in use, again and again. */
  readonly pieces: readonly number[]
}

/** The segments with what is in them, after an event. */
export interface MomentPicture {
  readonly index: number
  readonly timeUs: number | null
  readonly allocatedBytes: number
  readonly reservedBytes: number
  /** False: rebuilt from events, sizes rounded by rule. */
  readonly isExact: boolean
  readonly lines: readonly string[]
  /** By size, the largest first. */
  readonly segments: readonly SegmentPicture[]
  readonly leftOut: { readonly segments: number; readonly bytes: number }
}

export interface SnapshotMark {
  readonly index: number
  readonly kind: 'peak' | 'oom' | 'step'
}

export interface DevicePicture {
  readonly device: number
  readonly events: number
  /** Epoch microseconds of the first event; null where the file has no times. */
  readonly beginUs: number | null
  readonly peak: { readonly index: number; readonly allocatedBytes: number; readonly reservedBytes: number }
  readonly end: { readonly allocatedBytes: number; readonly reservedBytes: number }
  readonly bands: Readonly<Record<BandKind, BandPicture>>
  readonly marks: readonly SnapshotMark[]
  /** What the analysis found, in words. */
  readonly verdicts: readonly { readonly label: string; readonly lines: readonly string[]; readonly isBad: boolean }[]
  /** What was in use at the peak. */
  readonly flame: FlameNode
  /** By index. */
  readonly moments: readonly MomentPicture[]
}

export interface SnapshotPicture {
  readonly name: string
  readonly bytes: number
  readonly notes: readonly string[]
  readonly devices: readonly DevicePicture[]
}

export interface DiffRow {
  readonly change: 'new' | 'gone' | 'grown' | 'shrunk'
  readonly line: string
  readonly category: string
  readonly stack: readonly string[]
  readonly before: { readonly bytes: number; readonly blocks: number }
  readonly after: { readonly bytes: number; readonly blocks: number }
  readonly deltaBytes: number
}

export interface DiffPicture {
  readonly device: number
  /** `the peak` */
  readonly at: string
  readonly beforeBytes: number
  readonly afterBytes: number
  readonly warnings: readonly string[]
  /** Largest change first. */
  readonly rows: readonly DiffRow[]
  readonly leftOut: { readonly rows: number; readonly bytes: number }
  readonly categories: readonly { readonly name: string; readonly beforeBytes: number; readonly afterBytes: number }[]
}

/** What the HTML file carries. */
export interface SnapshotPageData {
  readonly pictures: readonly SnapshotPicture[]
  readonly diffs: readonly DiffPicture[]
}

/** Most columns that are made of a stretch of events. */
export const MOST_COLUMNS = 4096

/** Most values repeat, so that differences are short. */
export function differencesOf(values: Float64Array): number[] {
  const differences: number[] = []
  let last = 0
  for (const value of values) {
    differences.push(value - last)
    last = value
  }
  return differences
}

export function sumsOf(differences: readonly number[]): Float64Array {
  const sums = new Float64Array(differences.length)
  let sum = 0
  for (let i = 0; i < sums.length; i++) {
    sum += differences[i] as number
    sums[i] = sum
  }
  return sums
}

/** First event of a column. */
export function columnStart({ from, to }: Pick<BandColumns, 'from' | 'to'>, count: number, column: number): number {
  return from + Math.floor((column * (to - from)) / count)
}
