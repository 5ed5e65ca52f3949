import type { Dropped, History, HistoryAnswer, HistoryQuery, HubEvent, Sink } from '../core/kinds.ts'
import type { GpuSample } from '../core/model.ts'
import { GpuHistory, type HistorySize } from './gpu-history.ts'
import { answerQuery } from './history-query.ts'
import { MINUTE_MS } from './minute-ring.ts'
import type { StoreValues } from './settings.ts'

const MAX_GPUS = 128
const FORGET_MS = 24 * 3_600_000
/** What Date can express. */
const LARGEST_TIME = 8.64e15

export interface MemoryHistory extends History, Sink {
  readonly hours: number
  /** Takes samples of an earlier run, in ascending time for each GPU; `end` makes them visible at full rate. */
  startFilling(): { add(sample: GpuSample): boolean; end(): void }
  /** Whether the samples in memory go back as far as this. */
  reaches(query: Pick<HistoryQuery, 'gpu' | 'from'>): boolean
  /** The history of one GPU; undefined: there is none. */
  of(gpu: string): GpuHistory | undefined
  bytes(): number
  dropped(): Dropped
}

/** What the screens draw: bounded, in memory, for every numeric field of every GPU. */
export function createHistory(settings: Pick<StoreValues, 'history.samples' | 'history.hours'>): MemoryHistory {
  return new RingHistory(settings['history.samples'], settings['history.hours'])
}

class RingHistory implements MemoryHistory {
  readonly name = 'history'
  readonly hours: number
  readonly #size: HistorySize
  readonly #gpus = new Map<string, GpuHistory>()
  #listed: ReadonlySet<string> = new Set()
  #sweptAt = Number.NEGATIVE_INFINITY
  #dropped = 0

  constructor(samples: number, hours: number) {
    this.hours = hours
    this.#size = { samples, minutes: Math.ceil(hours * 60) }
  }

  accept(event: HubEvent): void {
    if (event.type === 'restart') this.#gpus.clear()
    if (event.type === 'devices') this.#listed = new Set(event.devices.map((device) => device.id))
    if (event.type !== 'tick') return
    const { at, gpus } = event.tick
    for (const sample of gpus) {
      const gpu = isTime(sample.at) ? this.#gpuFor(sample.gpu) : null
      if (gpu) gpu.add(sample)
      else this.#dropped += 1
    }
    if (Math.abs(at - this.#sweptAt) >= MINUTE_MS) this.#forgetGone(at)
  }

  query(query: HistoryQuery): HistoryAnswer {
    return answerQuery(this.#gpus.get(query.gpu), query)
  }

  reaches({ gpu, from }: Pick<HistoryQuery, 'gpu' | 'from'>): boolean {
    const first = this.#gpus.get(gpu)?.samples.firstAt ?? Number.POSITIVE_INFINITY
    return Math.floor(from / MINUTE_MS) >= Math.floor(first / MINUTE_MS)
  }

  of(gpu: string): GpuHistory | undefined {
    return this.#gpus.get(gpu)
  }

  startFilling(): { add(sample: GpuSample): boolean; end(): void } {
    const fillings = new Map<string, { add(sample: GpuSample): boolean; end(): void }>()
    return {
      add: (sample) => {
        let filling = fillings.get(sample.gpu)
        if (!filling) {
          filling = isTime(sample.at) ? this.#gpuFor(sample.gpu)?.startFilling() : undefined
          if (!filling) return false
          fillings.set(sample.gpu, filling)
        }
        return filling.add(sample)
      },
      end: () => {
        for (const filling of fillings.values()) filling.end()
        fillings.clear()
      },
    }
  }

  bytes(): number {
    let bytes = 0
    for (const gpu of this.#gpus.values()) bytes += gpu.bytes
    return bytes
  }

  dropped(): Dropped {
    return { count: this.#dropped, reason: this.#dropped === 0 ? null : `more than ${MAX_GPUS} GPUs, or a sample without a valid time` }
  }

  /** null: no room, and no known GPU is gone. */
  #gpuFor(id: string): GpuHistory | null {
    const known = this.#gpus.get(id)
    if (known) return known
    if (this.#gpus.size >= MAX_GPUS && !this.#forgetLongestGone()) return null
    const gpu = new GpuHistory(this.#size)
    this.#gpus.set(id, gpu)
    return gpu
  }

  #forgetGone(at: number): void {
    this.#sweptAt = at
    for (const [id, gpu] of this.#gpus) if (!this.#listed.has(id) && at - gpu.lastAt > FORGET_MS) this.#gpus.delete(id)
  }

  #forgetLongestGone(): boolean {
    let longest: string | null = null
    let lastAt = Number.POSITIVE_INFINITY
    for (const [id, gpu] of this.#gpus) {
      if (this.#listed.has(id) || gpu.lastAt >= lastAt) continue
      longest = id
      lastAt = gpu.lastAt
    }
    return longest !== null && this.#gpus.delete(longest)
  }
}

function isTime(at: number): boolean {
  return Math.abs(at) <= LARGEST_TIME
}
