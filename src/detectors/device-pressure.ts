/** Memory pressure as the device shows it: memory that fills and empties again and again, or stays nearly full. */
import { formatBytes, formatDuration, formatPercent } from '../core/format.ts'
import { flushed } from '../core/memory/cache-flush.ts'
import type { RunMap } from '../core/memory/run-map.ts'
import type { Finding, GpuSample, Severity } from '../core/model.ts'
import { both, type FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { evidenceNumber } from './words.ts'

export interface DevicePressureOptions {
  /** Failures within the window that make a warning. */
  readonly retries: number
  readonly windowSeconds: number
  /** Levels for information and for a warning, and how long they must hold. */
  readonly levelRatio: number
  readonly fullRatio: number
  readonly holdMinutes: number
  /** Hysteresis: a level ends only this far below it. */
  readonly levelGapRatio: number
}

const CAP = 64
const TIMES_KEPT = 64
/** Part of the fingerprint of findings about the level of memory. */
export const LEVEL = 'level'

interface Level {
  /** A run set the limit; else it is the whole GPU. */
  readonly isSet: boolean
  readonly limit: number
  readonly ratio: number
}

interface GpuState {
  lastAt: number
  used: number
  top: number
  flushes: number[]
  /** Since when memory has been above the level and above full; -1 when it is not. */
  levelSince: number
  fullSince: number
}

export class DevicePressure {
  readonly #options: DevicePressureOptions
  readonly #windowMs: number
  readonly #book: FindingBook
  readonly #map: RunMap
  #gpus = new Map<string, GpuState>()

  constructor(options: DevicePressureOptions, book: FindingBook, map: RunMap) {
    this.#options = options
    this.#windowMs = options.windowSeconds * 1000
    this.#book = book
    this.#map = map
  }

  snapshot(): unknown {
    return structuredClone([...this.#gpus])
  }

  restore(state: unknown): void {
    this.#gpus = new Map(structuredClone(state) as [string, GpuState][])
  }

  accept(sample: GpuSample): readonly Finding[] {
    const { at, gpu, memoryUsedBytes: used, memoryTotalBytes: total } = sample
    if (used === null || total === null || total <= 0) return NO_FINDINGS
    const ratio = used / total
    let state = this.#gpus.get(gpu)
    if (state === undefined) {
      if (this.#gpus.size >= CAP) return NO_FINDINGS
      state = { lastAt: at, used: ratio, top: ratio, flushes: [], levelSince: -1, fullSince: -1 }
      this.#gpus.set(gpu, state)
    }
    if (at < state.lastAt) {
      if (state.lastAt - at < 5000) return NO_FINDINGS
      Object.assign(state, { top: ratio, flushes: [], levelSince: -1, fullSince: -1 })
    }
    const empty = sample.processes !== null && sample.processes.length === 0
    const flush = flushed({ before: state.top, now: ratio, quietMs: at - state.lastAt, empty })
    if (flush.happened) state.flushes.push(at)
    if (state.flushes.length > TIMES_KEPT) state.flushes.shift()
    state.top = flush.top
    state.lastAt = at
    state.used = ratio
    if (empty) state.flushes = []
    // A run that set a limit runs out of memory there, however large the GPU is.
    const limited = this.#map.limited(gpu, at)
    const isSet = limited !== null && limited.ratio > ratio
    const level = { isSet, ...(isSet ? limited : { limit: total, ratio }) }
    return both(this.#judgeFlushes(gpu, at, state), this.#judgeLevel(gpu, at, level, state))
  }

  #judgeFlushes(gpu: string, at: number, state: GpuState): readonly Finding[] {
    if (state.flushes.length === 0 && this.#book.size === 0) return NO_FINDINGS
    const subject = subjectOf({ gpu, gpuIndex: this.#map.index(gpu) })
    const key = this.#book.key(subject)
    const recent = this.#map.covers(gpu, at) ? 0 : state.flushes.filter((one) => at - one <= this.#windowMs && one <= at).length
    if (recent === 0) return this.#book.resolve(key, at)
    if (recent < this.#options.retries && !this.#book.has(key)) return NO_FINDINGS
    if (!this.#book.due(key, at, 'warning')) return NO_FINDINGS
    return this.#book.raise(subject, at, {
      severity: 'warning',
      since: state.flushes.find((one) => at - one <= this.#windowMs) ?? at,
      message:
        `${this.#map.label(gpu)} was full ${recent} times in ${formatDuration(this.#windowMs)}, and each time much of it was freed at once: ` +
        'an allocator probably hits the limit and flushes its cache. Seen from the device only.',
      evidence: {
        source: 'device',
        flushesInWindow: recent,
        windowSeconds: this.#options.windowSeconds,
        usedRatio: evidenceNumber(state.used),
      },
      confidence: Math.min(0.8, 0.4 + 0.05 * recent),
      advice: ['Reduce the batch size or the sequence length.', 'Report steps with the SDK: the allocator counts these failures itself.'],
    })
  }

  /** Information when memory stays nearly full, a warning when almost nothing is left. */
  #judgeLevel(gpu: string, at: number, { limit, ratio, isSet }: Level, state: GpuState): readonly Finding[] {
    const { levelRatio, fullRatio, holdMinutes, levelGapRatio } = this.#options
    state.levelSince = above(state.levelSince, ratio, levelRatio, levelGapRatio, at)
    state.fullSince = above(state.fullSince, ratio, fullRatio, levelGapRatio, at)
    if (state.levelSince < 0 && this.#book.size === 0) return NO_FINDINGS
    const subject = subjectOf({ gpu, gpuIndex: this.#map.index(gpu) })
    const key = this.#book.key(subject, LEVEL)
    const hold = holdMinutes * 60_000
    if (state.levelSince < 0)
      return this.#book.has(key) ? this.#book.resolve(key, at, `${this.#map.label(gpu)}: memory has free space again.`) : NO_FINDINGS
    if (at - state.levelSince < hold) return NO_FINDINGS
    // A run that reports its allocator may keep a full cache.
    const full = state.fullSince >= 0 && at - state.fullSince >= hold && !this.#map.covers(gpu, at)
    const severity: Severity = full ? 'warning' : 'info'
    if (!this.#book.due(key, at, severity)) return NO_FINDINGS
    return this.#book.raise(
      subject,
      at,
      {
        severity,
        since: state.levelSince,
        message: `${this.#map.label(gpu)}: ${formatPercent(ratio)} of ${formatBytes(limit)}${isSet ? ', the limit that its run set,' : ''} has been in use for ${formatDuration(at - state.levelSince)}; ${formatBytes(limit * (1 - ratio))} left.`,
        evidence: {
          source: 'device',
          usedRatio: evidenceNumber(ratio),
          freeBytes: Math.round(limit * (1 - ratio)),
          heldSeconds: Math.round((at - state.levelSince) / 1000),
        },
        confidence: 0.9,
        advice: [
          'An inference server that reserves its memory in advance looks like this: raise anomaly.threshold for it.',
          'Otherwise leave room for the next peak.',
        ],
      },
      LEVEL,
    )
  }
}

function above(since: number, ratio: number, level: number, gap: number, at: number): number {
  if (since < 0) return ratio >= level ? at : -1
  if (since > at) return at
  return ratio < level - gap ? -1 : since
}
