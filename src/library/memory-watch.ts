/** GPUs, detectors and observers for a while: the base of the memory commands and of the memory classes. */
import { randomBytes } from 'node:crypto'
import type { ConfigValues } from '../agent/config.ts'
import { SILENT_LOG } from '../agent/one-look.ts'
import { type Opened, refuseWithoutGpu, Sampling } from '../agent/sampling.ts'
import type { DetectorKind } from '../core/detector-contract.ts'
import { EXIT, Failure } from '../core/failure.ts'
import type { GpuView, HubEvent, Log } from '../core/kinds.ts'
import type { Finding, GpuInfo, ProcessView, Reading, Run, TrainingStep } from '../core/model.ts'
import { createEngine, type Engine } from '../detectors/engine.ts'
import { detectors } from '../detectors/index.ts'
import { detectorOptions } from '../detectors/settings.ts'

/** Sees each event before the findings from it. */
export interface MemoryObserver {
  accept(event: HubEvent): void
  acceptFinding?(finding: Finding): void
}

export interface MemoryWatchOptions {
  readonly values: ConfigValues
  readonly observers: readonly MemoryObserver[]
  /** All by default. */
  readonly kinds?: readonly DetectorKind[]
  /** Only this much of a recording; 0 or none: all of it. */
  readonly recordedSeconds?: number
  readonly log?: Log
}

export class MemoryWatch {
  /** Resolves when a recording is over. */
  readonly ended: Promise<void>
  readonly #options: MemoryWatchOptions
  readonly #sampling: Sampling
  readonly #engine: Engine
  readonly #wanted: ReadonlySet<number> | null
  #end: () => void = () => undefined
  #isOver = false
  #firstAt: Reading = null
  #lastAt: Reading = null

  constructor(options: MemoryWatchOptions) {
    this.#options = options
    const { values, log = SILENT_LOG } = options
    this.#wanted = values.devices === null ? null : new Set(values.devices)
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
    this.#sampling = new Sampling({
      // All GPUs are watched, whichever are shown: otherwise the GPU of a run could not be found.
      values: { ...values, devices: null },
      log,
      runId: randomBytes(16).toString('hex'),
      onEnded: () => this.#end(),
    })
    this.#engine = createEngine({
      kinds: options.kinds ?? detectors,
      options: detectorOptions(values),
      disabled: values['detectors.disabled'].filter((name) => (options.kinds ?? detectors).some((kind) => kind.name === name)),
      hostname: this.#sampling.state.hostname,
      onFailure: ({ detector, error }) => log.error({ err: error, detector }, 'a detector failed and is off'),
    })
    this.#sampling.hub.addSink({
      name: 'memory',
      accept: (event) => this.#hear(event),
    })
  }

  /** Throws a Failure when no GPU can be read, or when a requested one does not exist. */
  async start(): Promise<Opened> {
    try {
      const opened = await this.#sampling.open()
      refuseWithoutGpu(opened)
      this.#checkDevices()
      return opened
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  /** A run that another agent knows. */
  receiveRun(run: Run): void {
    this.#sampling.hub.receiveRun(run)
  }

  /** Steps that another agent received. */
  receiveSteps(steps: readonly TrainingStep[]): void {
    this.#sampling.hub.receiveSteps(steps)
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#sampling.stop()
  }

  /** The requested GPUs. */
  gpus(): readonly GpuView[] {
    return this.#sampling.state.gpus().filter(({ info }) => this.#isShown(info))
  }

  processes(): readonly ProcessView[] {
    const shown = new Set(this.gpus().map(({ info }) => info.id))
    return this.#sampling.state.processes().filter((process) => shown.has(process.gpu))
  }

  /** Of the first sample; null before it. */
  get firstAt(): Reading {
    return this.#firstAt
  }

  get lastAt(): Reading {
    return this.#lastAt
  }

  /** Problems of the sources; empty when all are ok. */
  troubles(): string[] {
    return this.#sampling.state
      .health()
      .filter(({ state }) => state !== 'ok' && state !== 'starting' && state !== 'ended')
      .map(({ source, state, message }) => `${source} ${state.replace('_', ' ')}: ${message ?? 'no reason given'}`)
  }

  #isShown({ index }: GpuInfo): boolean {
    return this.#wanted === null || this.#wanted.has(index)
  }

  #checkDevices(): void {
    const there = this.#sampling.state.devices().map((info) => info.index)
    const missing = [...(this.#wanted ?? [])].filter((index) => !there.includes(index))
    if (missing.length > 0 && there.length > 0)
      throw new Failure(`there is no GPU ${missing.join(', ')}; there are: ${[...new Set(there)].join(', ')}`, {
        exitCode: EXIT.noSource,
      })
  }

  #hear(event: HubEvent): void {
    if (this.#isOver || event.type === 'finding') return
    if (event.type === 'tick' && event.tick.gpus.length > 0) {
      const { at } = event.tick
      this.#firstAt ??= at
      const most = this.#options.recordedSeconds ?? 0
      if (most > 0 && at - this.#firstAt > most * 1000) {
        this.#isOver = true
        this.#end()
        return
      }
      this.#lastAt = at
    }
    const { observers } = this.#options
    for (const observer of observers) observer.accept(event)
    for (const finding of this.#engine.accept(event)) {
      const { gpuIndex } = finding.subject
      if (this.#wanted !== null && gpuIndex !== null && !this.#wanted.has(gpuIndex)) continue
      for (const observer of observers) observer.acceptFinding?.(finding)
    }
  }
}
