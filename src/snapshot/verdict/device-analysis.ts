/** All verdicts on one device of a snapshot, each made when it is asked for. */
import { ACTION, ACTIONS } from '../read/keys.ts'
import type { Snapshot } from '../read/read-snapshot.ts'
import { blockMapAt } from './block-map.ts'
import { Categories, type CategoryRule } from './categories.ts'
import { type Curve, curveOf, type Level } from './curve.ts'
import type { Device } from './device.ts'
import { type Fragmentation, type FragmentRequest, fragmentationOf } from './fragmentation.ts'
import { type LeakVerdict, leakVerdict } from './leak.ts'
import { Lifetimes } from './lifetimes.ts'
import { byCategory, byLine, byModule, type Holding, liveAt } from './live-set.ts'
import { type OutOfMemory, outOfMemoryOf } from './out-of-memory.ts'
import { type Retries, retriesOf } from './retries.ts'
import { SegmentPools } from './segment-pools.ts'
import { Selection, type SelectionOptions } from './selection.ts'
import { StackWordsTable } from './stack-words.ts'
import { type Steps, stepsOf } from './steps.ts'

export interface AnalysisOptions extends SelectionOptions {
  readonly categories?: readonly CategoryRule[]
  /** Memory of the device, for what lies outside PyTorch and for when it is full. */
  readonly deviceBytes?: number | undefined
}

/** Whether the events and the final blocks tell the same story, and what the ring lost. */
export interface Identity {
  readonly byEventsBytes: number
  readonly byBlocksBytes: number
  /** 0 unless events are missing. */
  readonly differenceBytes: number
  /** In use before the first event: freed in the window, and not. */
  readonly freedInWindowBytes: number
  readonly neverFreedBytes: number
  readonly lostFrees: number
  readonly hasFrees: boolean
}

/** Requests of the last so many steps are looked at where nothing failed. */
const LAST_STEPS = 3

export class DeviceAnalysis {
  readonly device: Device
  readonly words: StackWordsTable
  readonly lifetimes: Lifetimes
  readonly steps: Steps
  readonly curve: Curve
  readonly #options: AnalysisOptions
  readonly selection: Selection
  #categories: Categories | null = null
  #leak: LeakVerdict | null = null
  #retries: Retries | null = null

  constructor(snapshot: Snapshot, device: Device, options: AnalysisOptions = {}) {
    this.device = device
    this.#options = options
    this.words = new StackWordsTable(snapshot.tables)
    this.lifetimes = new Lifetimes(device)
    this.steps = stepsOf(snapshot, device)
    this.selection = new Selection(device, this.words, options)
    this.curve = curveOf(device, this.lifetimes, this.selection)
  }

  get isFiltered(): boolean {
    return !this.selection.isAll
  }

  get leak(): LeakVerdict {
    this.#leak ??= leakVerdict(this.lifetimes, this.steps, this.words)
    return this.#leak
  }

  get retries(): Retries {
    this.#retries ??= retriesOf(this.device.trace, this.steps, this.words)
    return this.#retries
  }

  get identity(): Identity {
    const { early, trace, endBytes, activeBytes, baseBytes, replaced, endAction } = this.lifetimes
    const neverFreed = early.sizes.filter((_, i) => early.freedAt[i] === trace.count).reduce((sum, size) => sum + size, 0)
    return {
      byEventsBytes: endBytes,
      byBlocksBytes: activeBytes,
      differenceBytes: endBytes - activeBytes,
      freedInWindowBytes: baseBytes - neverFreed,
      neverFreedBytes: neverFreed,
      lostFrees: replaced.size,
      hasFrees: endAction >= 0 || trace.count === 0,
    }
  }

  /** Events by action, those that occur. */
  get actions(): readonly { readonly action: string; readonly count: number }[] {
    const counts = this.device.trace.counts()
    return ACTIONS.map((action, i) => ({ action, count: counts[i] as number })).filter(({ count }) => count > 0)
  }

  get categories(): Categories {
    this.#categories ??= new Categories(this.lifetimes, this.steps, this.words, this.#options.categories)
    return this.#categories
  }

  liveAt(index: number): Holding[] {
    return liveAt(this.lifetimes, this.categories, this.selection, index)
  }

  levelAt(index: number): Level {
    const known = [this.curve.peak, this.curve.end, this.curve.reservedPeak].find((level) => level.index === index)
    return known ?? (curveOf(this.device, this.lifetimes, this.selection, [index]).stops[0] as Level)
  }

  /** Tied to the request that failed last; else to the largest of the last steps. Null: nothing was ever asked for. */
  get fragmentation(): Fragmentation | null {
    const [last] = this.outOfMemoryEvents.slice(-1)
    return last === undefined ? this.#fragmentationAtEnd() : this.#fragmentationAt(last)
  }

  get outOfMemoryEvents(): readonly number[] {
    return this.device.trace.find(ACTION.oom)
  }

  /** What PyTorch can have: what it had and the driver had left when it ran out; null where it did not. */
  get limitBytes(): number | null {
    const [last] = this.outOfMemoryEvents.slice(-1)
    const free = last === undefined ? null : this.device.trace.deviceFree(last)
    return last === undefined || free === null ? null : this.levelAt(last).reservedBytes + free
  }

  outOfMemory(eventIndex: number): OutOfMemory {
    const { trace } = this.device
    const holdings = this.liveAt(eventIndex)
    const words = this.words.of(trace.stack(eventIndex))
    return outOfMemoryOf({
      eventIndex,
      timeUs: trace.time(eventIndex),
      line: words.label,
      place: words.own ?? words.python,
      level: this.levelAt(eventIndex),
      fragmentation: this.#fragmentationAt(eventIndex),
      byLine: byLine(holdings, this.words),
      byCategory: byCategory(holdings),
      byModule: byModule(holdings, this.words),
      leak: this.leak,
      deviceBytes: this.#options.deviceBytes ?? null,
    })
  }

  #fragmentationAt(eventIndex: number): Fragmentation {
    const request = this.#requestOf(eventIndex, 'out of memory')
    return fragmentationOf(blockMapAt(this.device, this.lifetimes, eventIndex), request, this.words)
  }

  #fragmentationAtEnd(): Fragmentation | null {
    const { trace } = this.device
    const from = this.steps.ends.at(-1 - LAST_STEPS) ?? 0
    let largest = -1
    for (let i = from; i < trace.count; i++)
      if (trace.action(i) === ACTION.alloc && (largest < 0 || trace.size(i) > trace.size(largest))) largest = i
    if (largest < 0) return null
    const request = this.#requestOf(largest, 'largest of the last steps')
    return fragmentationOf(blockMapAt(this.device, this.lifetimes, trace.count - 1), request, this.words)
  }

  #requestOf(eventIndex: number, source: FragmentRequest['source']): FragmentRequest {
    const { trace, tables } = this.device
    const pools = new SegmentPools(this.device)
    const address = trace.address(eventIndex)
    return {
      bytes: trace.size(eventIndex),
      source,
      eventIndex,
      line: this.words.of(trace.stack(eventIndex)).label,
      stream: tables.streams.value(trace.stream(eventIndex)),
      pool: pools.ofEvent(trace.pool(eventIndex), address < 0 ? -1 : tables.addresses.value(address)),
      deviceFreeBytes: trace.deviceFree(eventIndex),
    }
  }
}
