/** Shows a recording to the detectors, as fast as it can be read; in this process, because no hardware is touched. */
import { EXIT, Failure } from '../core/failure.ts'
import type { HubEvent, Tick } from '../core/kinds.ts'
import type {
  Finding,
  GpuEvent,
  GpuInfo,
  GpuProcess,
  GpuSample,
  HostSample,
  ProcessInfo,
  ProcessView,
  Provenance,
  TrainingStep,
} from '../core/model.ts'
import { openRecording, type Recording, type RecordingItem, type RecordingStats } from '../core/recording/recording.ts'
import { createEngine, type EngineOptions } from '../detectors/engine.ts'
import { vendorOfModel } from '../sources/vendors.ts'
import { publicRun, type RunRecord } from '../training/run-record.ts'
import { RunTimeline } from '../training/run-timeline.ts'

export interface DetectionOptions {
  readonly engine: EngineOptions
  readonly until: number | null
  /** Nor anything more than this much recorded time after the first moment. */
  readonly durationMs: number | null
  /** Only findings about these GPUs, by index; null for all. */
  readonly devices: ReadonlySet<number> | null
  /** The runs that were recorded with it: what is known of them, such as how they ended, is shown when it was known. */
  readonly runs?: readonly RunRecord[]
  readonly onFindings: (findings: readonly Finding[]) => void
}

export interface Detection {
  readonly stats: RecordingStats
  readonly gpuSamples: number
  /** GPU samples with memory in use and in total. */
  readonly memorySamples: number
  readonly steps: number
  readonly findings: number
  /** Some of it was simulated when it was recorded. */
  readonly isSimulated: boolean
}

export async function openForReading(path: string): Promise<Recording> {
  try {
    return await openRecording(path, vendorOfModel)
  } catch (cause) {
    throw new Failure((cause as Error).message, { exitCode: EXIT.noSource, cause })
  }
}

export async function detectRecording(recording: Recording, options: DetectionOptions): Promise<Detection> {
  const engine = createEngine(options.engine)
  const counts = { gpuSamples: 0, memorySamples: 0, steps: 0, findings: 0, isSimulated: false }
  await playRecording(recording, options, (event) => {
    if (event.type === 'devices') counts.isSimulated ||= event.devices.some((device) => device.provenance === 'simulated')
    else if (event.type === 'steps') counts.steps += event.steps.length
    else if (event.type === 'tick') {
      for (const sample of event.tick.gpus) if (sample.memoryUsedBytes !== null && sample.memoryTotalBytes !== null) counts.memorySamples++
      counts.gpuSamples += event.tick.gpus.length
    }
    const found = engine.accept(event)
    const shown = options.devices === null ? found : found.filter((finding) => isAbout(finding, options.devices))
    if (shown.length === 0) return
    counts.findings += shown.length
    options.onFindings(shown)
  })
  return { stats: recording.stats(), ...counts }
}

export type PlayOptions = Pick<DetectionOptions, 'until' | 'durationMs' | 'runs'>

/** Passes on what was recorded as the hub published it. */
export async function playRecording(recording: Recording, options: PlayOptions, accept: (event: HubEvent) => void): Promise<void> {
  const moments = new Moments()
  const timeline = new RunTimeline(options.runs ?? [])
  const sayOf = (runs: readonly RunRecord[]) => {
    for (const run of runs) accept({ type: 'run', run: publicRun(run) })
  }
  let firstAt: number | null = null
  let isCut = false
  let known: readonly GpuInfo[] | null = null
  for await (const item of recording) {
    firstAt ??= item.at
    isCut = (options.until !== null && item.at > options.until) || (options.durationMs !== null && item.at > firstAt + options.durationMs)
    if (isCut) break
    if (item.devices !== known) {
      known = item.devices
      moments.devices = known
      accept({ type: 'devices', devices: known })
    }
    sayOf(timeline.moveTo(item.at))
    const { tick, steps } = moments.read(item)
    if (tick !== null) accept({ type: 'tick', tick })
    if (steps.length > 0) accept({ type: 'steps', steps, provenance: moments.provenance })
  }
  if (!isCut) sayOf(timeline.finish())
}

function isAbout({ subject }: Finding, devices: ReadonlySet<number> | null): boolean {
  return devices === null || subject.gpuIndex === null || devices.has(subject.gpuIndex)
}

const NO_PROCESSES: readonly ProcessView[] = []
const NO_STEPS: readonly TrainingStep[] = []
const NO_EVENTS: readonly GpuEvent[] = []

/** What was recorded of one moment, as the hub would publish it. */
class Moments {
  readonly #infos = new Map<number, ProcessInfo>()
  devices: readonly GpuInfo[] = []
  /** Of the GPUs of the last moment: steps do not say theirs. */
  provenance: Provenance = 'replay'
  #seq = 0

  read({ at, samples }: RecordingItem): { tick: Tick | null; steps: readonly TrainingStep[] } {
    const gpus: GpuSample[] = []
    let events: GpuEvent[] | null = null
    let steps: TrainingStep[] | null = null
    let host: HostSample | null = null
    for (const sample of samples) {
      if (sample.kind === 'gpu') gpus.push(sample)
      else if (sample.kind === 'step') {
        steps ??= []
        steps.push(sample)
      } else if (sample.kind === 'event') {
        events ??= []
        events.push(sample)
      } else if (sample.kind === 'host') host = sample
    }
    const first = gpus[0]
    if (first) this.provenance = this.devices.find((device) => device.id === first.gpu)?.provenance ?? 'replay'
    if (host !== null) this.#learn(host)
    const isTick = gpus.length > 0 || events !== null || host !== null
    const tick: Tick | null = isTick
      ? {
          seq: ++this.#seq,
          at,
          source: 'replay',
          provenance: this.provenance,
          gpus,
          processes: this.#join(gpus),
          host,
          events: events ?? NO_EVENTS,
        }
      : null
    return { tick, steps: steps ?? NO_STEPS }
  }

  #learn(host: HostSample): void {
    this.#infos.clear()
    for (const info of host.processes) this.#infos.set(info.pid, info)
  }

  #join(gpus: readonly GpuSample[]): readonly ProcessView[] {
    let joined: ProcessView[] | null = null
    for (const { gpu, processes } of gpus)
      for (const process of processes ?? []) {
        joined ??= []
        joined.push(viewOf(process, gpu, this.#infos.get(process.pid) ?? null))
      }
    return joined ?? NO_PROCESSES
  }
}

/** Written out: a spread costs a tenth of the whole detection here. */
function viewOf(process: GpuProcess, gpu: string, info: ProcessInfo | null): ProcessView {
  const { pid, type, memoryUsedBytes, smRatio, memoryRatio, encoderRatio, decoderRatio } = process
  return { pid, type, memoryUsedBytes, smRatio, memoryRatio, encoderRatio, decoderRatio, gpu, info }
}
