/** One GPU as the page knows it. Only what is shown of it is drawn again when it changes. */
import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type { GpuInfo, GpuSample, ProcessView, SourceHealth } from '../../../src/core/model.ts'
import { agentNow, now } from './agent-clock.ts'
import { type Freshness, freshnessOf } from './freshness.ts'
import { Recent } from './recent.ts'

export class GpuCell {
  readonly id: string
  readonly info: Signal<GpuInfo>
  readonly sample = signal<GpuSample | null>(null)
  readonly processes = signal<readonly ProcessView[]>([])
  readonly recent = new Recent()
  /** Grows with every point of `recent`. */
  readonly recentVersion = signal(0)
  /** In the agent's time; of a recording, when it was played. */
  readonly arrivedAt = signal<number | null>(null)
  readonly freshness: ReadonlySignal<Freshness>
  readonly #source = signal<string | null>(null)

  constructor(info: GpuInfo, health: ReadonlySignal<readonly SourceHealth[]>, isLinked: ReadonlySignal<boolean>) {
    this.id = info.id
    this.info = signal(info)
    // Compared by its text, so that a page is not drawn again each second because of it.
    const state = computed(() => {
      const source =
        this.#source.value ?? (info.provenance === 'simulated' ? 'demo' : info.provenance === 'replay' ? 'replay' : info.vendor)
      const arrivedAt = this.arrivedAt.value
      return JSON.stringify(
        freshnessOf({
          isLinked: isLinked.value,
          health: health.value.find((one) => one.source === source || one.provenance === 'replay') ?? null,
          sample: this.sample.value,
          ageMs: arrivedAt === null ? null : Math.max(0, now.value - arrivedAt),
        }),
      )
    })
    this.freshness = computed(() => JSON.parse(state.value) as Freshness)
  }

  take(sample: GpuSample, processes: readonly ProcessView[], source: string | null, ageMs = 0): void {
    this.#source.value = source ?? this.#source.value
    this.arrivedAt.value = agentNow() - ageMs
    this.processes.value = processes
    this.sample.value = sample
    const { memoryUsedBytes: used, memoryTotalBytes: total, utilizationRatio: utilization, at } = sample
    this.recent.push({ at, utilization, memory: used === null || !total ? null : used / total })
    this.recentVersion.value++
  }

  /** Milliseconds since the readings were taken; null before the first. Reading it subscribes to the clock. */
  ageMs(): number | null {
    const arrivedAt = this.arrivedAt.value
    return arrivedAt === null ? null : Math.max(0, now.value - arrivedAt)
  }
}
