/** A detector that judges each GPU separately: keeps the GPUs, their observed time and labels, and the open findings. */
import { BoundedMap } from '../core/bounded-map.ts'
import type { Detector, DetectorInput } from '../core/detector-contract.ts'
import type { Finding, FindingSubject, GpuEvent, GpuInfo, GpuSample, ProcessView, Reading } from '../core/model.ts'
import { FindingBook, NO_FINDINGS, subjectOf } from './finding.ts'
import { advance, type ObservedTime, observedTime } from './observed-time.ts'

const GPU_CAP = 256

/** Static facts that detectors compare readings with. */
export interface GpuFacts {
  readonly index: number
  readonly label: string
  readonly mig: boolean
  readonly slowdownCelsius: Reading
  readonly maxCelsius: Reading
  readonly junctionMaxCelsius: Reading
  readonly memoryMaxCelsius: Reading
}

export interface WatchedGpu<State> {
  readonly id: string
  facts: GpuFacts | null
  time: ObservedTime
  state: State
}

export interface GpuWatch<State> {
  initial(): State
  sample(gpu: WatchedGpu<State>, sample: GpuSample, processes: readonly ProcessView[], book: FindingBook): readonly Finding[]
  event?(gpu: WatchedGpu<State>, event: GpuEvent, book: FindingBook): readonly Finding[]
  /** Sees every input, before the GPU's own turn: steps, runs, host. */
  any?(input: DetectorInput, book: FindingBook): readonly Finding[]
  /** More state than the table, JSON-safe. */
  extra?: { snapshot(): unknown; restore(state: unknown): void }
}

export function subjectOfGpu(gpu: WatchedGpu<unknown>, parts: Partial<FindingSubject> = {}): FindingSubject {
  return subjectOf({ gpu: gpu.id, gpuIndex: gpu.facts?.index ?? null, ...parts })
}

/** `GPU 0`, or the id when the index is unknown. */
export function gpuName(gpu: WatchedGpu<unknown>): string {
  return `GPU ${gpu.facts?.label ?? gpu.id}`
}

function factsOf(device: GpuInfo): GpuFacts {
  return {
    index: device.index,
    label: device.label,
    mig: device.mig !== null,
    slowdownCelsius: device.temperatureSlowdownCelsius,
    maxCelsius: device.temperatureMaxCelsius,
    junctionMaxCelsius: device.junctionTemperatureMaxCelsius,
    memoryMaxCelsius: device.memoryTemperatureMaxCelsius,
  }
}

export function watchGpus<State>(name: string, watch: GpuWatch<State>): Detector {
  const gpus = new BoundedMap<string, WatchedGpu<State>>(GPU_CAP)
  const book = new FindingBook(name)
  const watched = (id: string) => gpus.get(id) ?? gpus.keep(id, { id, facts: null, time: observedTime(), state: watch.initial() })

  function own(input: DetectorInput): readonly Finding[] {
    switch (input.type) {
      case 'gpu': {
        const gpu = watched(input.sample.gpu)
        return advance(gpu.time, input.sample.at) ? watch.sample(gpu, input.sample, input.processes, book) : NO_FINDINGS
      }
      case 'device':
        watched(input.device.id).facts = factsOf(input.device)
        return NO_FINDINGS
      case 'event':
        return watch.event && input.event.gpu !== null ? watch.event(watched(input.event.gpu), input.event, book) : NO_FINDINGS
      default:
        return NO_FINDINGS
    }
  }

  return {
    accept(input) {
      if (!watch.any) return own(input)
      const first = watch.any(input, book)
      const second = own(input)
      return first.length === 0 ? second : second.length === 0 ? first : [...first, ...second]
    },
    snapshot: () => ({ gpus: gpus.saved(), findings: book.snapshot(), extra: watch.extra?.snapshot() ?? null }),
    restore(state) {
      const saved = state as { gpus: unknown; findings: unknown; extra: unknown }
      gpus.load(saved.gpus)
      book.restore(saved.findings)
      watch.extra?.restore(saved.extra)
    },
  }
}
