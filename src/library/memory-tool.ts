/** What the memory classes of the library share: their options, and starting and stopping. */
import { writeFile } from 'node:fs/promises'
import { loadConfig } from '../agent/config.ts'
import type { DetectorKind } from '../core/detector-contract.ts'
import type { GpuView, Log } from '../core/kinds.ts'
import type { ProcessView } from '../core/model.ts'
import type { MemoryProfile, MemoryProfileReport } from '../report/memory-profile.ts'
import { profileHtml } from '../report/profile-html.ts'
import { profileText } from '../report/profile-text.ts'
import { type MemoryObserver, MemoryWatch } from './memory-watch.ts'
import { analyzeSnapshot, type SnapshotAnalysisOptions, type SnapshotReport } from './snapshot-analysis.ts'

export interface MemoryToolOptions {
  /** GPU indexes; all by default. */
  readonly devices?: readonly number[]
  /** Seconds between samples; at least 0.1, the default. */
  readonly samplingInterval?: number
  /** auto (default), nvidia, amd, intel, demo or replay:PATH. */
  readonly source?: string
  /** Scenario of simulated GPUs: healthy, leak, oom … */
  readonly demoScenario?: string
  /** Speed of a recording: 1, 10, … or max, the default. */
  readonly replaySpeed?: number | 'max'
  /** Silent by default. */
  readonly log?: Log
}

const DEFAULT_INTERVAL = 0.1

/** stop() may be called before start() has resolved. */
export class MemoryTool {
  readonly #options: MemoryToolOptions
  readonly #observers: readonly MemoryObserver[]
  readonly #kinds: readonly DetectorKind[]
  #watch: MemoryWatch | null = null
  #started: Promise<unknown> | null = null
  #isStopped = false

  constructor(options: MemoryToolOptions, observers: readonly MemoryObserver[], kinds: readonly DetectorKind[]) {
    this.#options = options
    this.#observers = observers
    this.#kinds = kinds
  }

  get isMonitoring(): boolean {
    return this.#started !== null && !this.#isStopped
  }

  async start(): Promise<void> {
    if (this.#started !== null && !this.#isStopped) {
      await this.#started
      return
    }
    this.#isStopped = false
    const { devices, samplingInterval, source, demoScenario, replaySpeed, log } = this.#options
    const { values } = loadConfig({
      flags: {
        interval: samplingInterval ?? DEFAULT_INTERVAL,
        ...(devices === undefined ? {} : { devices: [...devices] }),
        ...(source === undefined ? {} : { source }),
        ...(demoScenario === undefined ? {} : { 'demo.scenario': demoScenario }),
        'replay.speed': replaySpeed ?? 'max',
      },
    })
    const watch = new MemoryWatch({ values, observers: this.#observers, kinds: this.#kinds, ...(log ? { log } : {}) })
    this.#watch = watch
    const started = watch.start()
    this.#started = started
    try {
      await started
    } catch (error) {
      this.#started = null
      this.#watch = null
      throw error
    }
  }

  async stop(): Promise<void> {
    if (this.#started === null || this.#isStopped) return
    this.#isStopped = true
    // The caller of start() gets its error; here it only has to be over.
    await Promise.allSettled([this.#started])
    await this.#watch?.stop()
  }

  /** Resolves when a recording is over; never with live GPUs. */
  async ended(): Promise<void> {
    await this.#started
    await this.#watch?.ended
  }

  gpus(): readonly GpuView[] {
    return this.#watch?.gpus() ?? []
  }

  processes(): readonly ProcessView[] {
    return this.#watch?.processes() ?? []
  }

  /** Of the latest sample, or now. */
  get lastAt(): number {
    return this.#watch?.lastAt ?? Date.now()
  }

  /** Writes the report where there is a path, and gives it. */
  async write<Report extends MemoryProfileReport>(path: string | undefined, report: Report, profile: MemoryProfile): Promise<Report> {
    if (path === undefined) return report
    const infos = this.gpus().map((view) => view.info)
    const text = /\.html?$/i.test(path)
      ? profileHtml(profile, report, infos)
      : `${/\.txt$/i.test(path) ? profileText(report) : JSON.stringify(report, null, 2)}\n`
    await writeFile(path, text)
    return report
  }
}

/** What all memory classes can be asked to do. */
export class MemoryMonitoring {
  readonly #tool: MemoryTool

  constructor(tool: MemoryTool) {
    this.#tool = tool
  }

  /** What a PyTorch memory snapshot says, as `gpuwarden snapshot FILE` does; the GPUs need not be watched for it. */
  analyzeSnapshot(path: string, options: SnapshotAnalysisOptions = {}): Promise<SnapshotReport> {
    return analyzeSnapshot(path, options)
  }

  /** Resolves when the GPUs are open; rejects with a Failure that says what to do. */
  startMonitoring(): Promise<void> {
    return this.#tool.start()
  }

  stopMonitoring(): Promise<void> {
    return this.#tool.stop()
  }

  /** Resolves when a recording (source replay:PATH) is over. */
  ended(): Promise<void> {
    return this.#tool.ended()
  }
}

export function deviceSet(devices: readonly number[] | undefined): ReadonlySet<number> | null {
  return devices === undefined ? null : new Set(devices)
}

/** A callback that throws must not end the monitoring, but its error must surface. */
export function callSafely<T>(callback: ((value: T) => void) | undefined, value: T): void {
  if (callback === undefined) return
  try {
    callback(value)
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}
