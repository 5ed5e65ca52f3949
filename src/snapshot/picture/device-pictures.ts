/** The pictures of one device: all that fits into a file at once, and closer looks where somebody asks for them. */
import {
  BAND_KINDS,
  type BandColumns,
  type BandKind,
  type BandPicture,
  type DevicePicture,
  MOST_COLUMNS,
  type MomentPicture,
  type SnapshotMark,
} from '../../core/memory/snapshot-picture.ts'
import { fragmentationLines } from '../output/fragmentation-text.ts'
import { leakLines } from '../output/leak-text.ts'
import { oomLines } from '../output/oom-text.ts'
import { identityLines, retriesText } from '../output/summary-text.ts'
import type { DeviceAnalysis } from '../verdict/device-analysis.ts'
import { type BandChoice, chooseBands } from './band-choice.ts'
import { BandTrack } from './band-track.ts'
import { flameOf } from './flame.ts'
import { CategoryGrouping, type Grouping, LineGrouping } from './grouping.ts'
import { momentOf } from './segment-map.ts'

const MOST_STEPS = 500
const MOST_MOMENTS = 40
/** Each moment takes a look at all events. */
const MOST_LOOKS = 5e7

export class DevicePictures {
  readonly #analysis: DeviceAnalysis
  readonly #limitBytes: number | null
  readonly #lines: LineGrouping
  readonly #tracks = new Map<BandKind, { readonly choice: BandChoice; readonly track: BandTrack }>()
  #requestBytes: number | null | undefined

  /** `limitBytes`: how much memory there is for PyTorch; null where nobody said. */
  constructor(analysis: DeviceAnalysis, limitBytes: number | null = null) {
    this.#analysis = analysis
    this.#limitBytes = limitBytes
    this.#lines = new LineGrouping(analysis.lifetimes, analysis.words)
  }

  get device(): number {
    return this.#analysis.device.index
  }

  get events(): number {
    return this.#analysis.device.trace.count
  }

  columns(kind: BandKind, from: number, to: number, count: number): BandColumns {
    return this.#track(kind).track.columns(from, to, Math.min(count, MOST_COLUMNS))
  }

  /** After the event `index`. */
  moment(index: number): MomentPicture {
    if (this.#requestBytes === undefined) this.#requestBytes = this.#analysis.fragmentation?.request.bytes ?? null
    return momentOf(this.#analysis, this.#lines, this.#requestBytes, this.#track('line').track.usedAfter(index), index)
  }

  picture(): DevicePicture {
    const { curve, device } = this.#analysis
    const { peak, end } = curve
    return {
      device: device.index,
      events: device.trace.count,
      beginUs: device.trace.time(0),
      peak: { index: peak.index, allocatedBytes: peak.allocatedBytes, reservedBytes: peak.reservedBytes },
      end: { allocatedBytes: end.allocatedBytes, reservedBytes: end.reservedBytes },
      bands: Object.fromEntries(BAND_KINDS.map((kind) => [kind, this.#bands(kind)])) as Record<BandKind, BandPicture>,
      marks: this.#marks(),
      verdicts: this.#verdicts(),
      flame: flameOf(this.#analysis, this.#analysis.liveAt(peak.index)),
      moments: this.#momentIndexes().map((index) => this.moment(index)),
    }
  }

  #bands(kind: BandKind): BandPicture {
    return { bands: this.#track(kind).choice.bands, columns: this.columns(kind, 0, this.events, MOST_COLUMNS) }
  }

  #track(kind: BandKind): { readonly choice: BandChoice; readonly track: BandTrack } {
    const known = this.#tracks.get(kind)
    if (known) return known
    const { device, lifetimes, selection, words, categories } = this.#analysis
    const grouping: Grouping = kind === 'line' ? this.#lines : new CategoryGrouping(categories, this.events)
    const choice = chooseBands(lifetimes, selection, grouping, words)
    const { bandOf, bands } = choice
    const made = { choice, track: new BandTrack({ device, lifetimes, selection, grouping, bandOf, bandCount: bands.length }) }
    this.#tracks.set(kind, made)
    return made
  }

  #marks(): SnapshotMark[] {
    const { curve, steps, outOfMemoryEvents } = this.#analysis
    const ends = steps.source === 'equal parts' ? [] : steps.ends.slice(-MOST_STEPS)
    return [
      ...ends.map((index): SnapshotMark => ({ index, kind: 'step' })),
      ...outOfMemoryEvents.slice(-MOST_STEPS).map((index): SnapshotMark => ({ index, kind: 'oom' })),
      { index: curve.peak.index, kind: 'peak' },
    ]
  }

  #verdicts(): DevicePicture['verdicts'] {
    const analysis = this.#analysis
    const { leak, retries, identity } = analysis
    const [oom] = analysis.outOfMemoryEvents.slice(-1)
    return [
      ...(oom === undefined ? [] : [{ label: 'Out of memory', lines: oomLines(analysis.outOfMemory(oom)), isBad: true }]),
      { label: 'Leak', lines: leakLines(analysis, this.#limitBytes, true, ''), isBad: leak.answer === 'leak' },
      { label: 'Fragmentation', lines: fragmentationLines(analysis.fragmentation), isBad: false },
      ...(this.events === 0 ? [] : [{ label: 'Retries', lines: [retriesText(analysis)], isBad: retries.isThrashing }]),
      { label: 'Check', lines: identityLines(analysis), isBad: identity.differenceBytes !== 0 },
    ]
  }

  /** The peak, the end, the last out-of-memory, and moments between at equal distances. */
  #momentIndexes(): number[] {
    const { curve, outOfMemoryEvents } = this.#analysis
    const last = this.events - 1
    const many = Math.max(3, Math.min(MOST_MOMENTS, Math.floor(MOST_LOOKS / Math.max(1, this.events))))
    const even = Array.from({ length: many }, (_, i) => Math.round((i * last) / (many - 1)))
    const chosen = this.events === 0 ? [-1] : [...even, curve.peak.index, ...outOfMemoryEvents.slice(-1)]
    return [...new Set(chosen)].sort((a, b) => a - b)
  }
}
