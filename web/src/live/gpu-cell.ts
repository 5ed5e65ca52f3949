/** One GPU as the page shows it. Only what is shown of it is drawn again when it changes. */
import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type { GpuView } from '../../../src/core/kinds.ts'
import type { Known } from '../../../src/core/known/known.ts'
import type { GpuInfo, GpuSample, ProcessView, SourceHealth } from '../../../src/core/model.ts'
import { type Freshness, freshnessOf } from './freshness.ts'
import { Recent } from './recent.ts'

/** What else changes whether readings are current. */
export interface Moment {
  readonly now: number
  readonly isLinked: boolean
  readonly health: readonly SourceHealth[]
}

export class GpuCell {
  readonly id: string
  readonly info: Signal<GpuInfo>
  readonly sample = signal<GpuSample | null>(null)
  readonly processes = signal<readonly ProcessView[]>([])
  readonly recent = new Recent()
  /** Grows with every point of `recent`. */
  readonly recentVersion = signal(0)
  /** With its age. Reading it subscribes to the clock. */
  readonly view: ReadonlySignal<GpuView>
  readonly freshness: ReadonlySignal<Freshness>
  readonly #known: Known

  constructor(info: GpuInfo, known: Known, moment: ReadonlySignal<Moment>) {
    this.id = info.id
    this.info = signal(info)
    this.#known = known
    this.view = computed(() => {
      const unknown = { info: this.info.value, sample: this.sample.value, ageMs: null, live: false }
      return known.gpu(this.id, moment.value.now) ?? unknown
    })
    // Compared by its text, so that a page is not drawn again each second because of it.
    const state = computed(() => JSON.stringify(freshnessOf(moment.value.isLinked, known.healthOf(this.id), this.view.value)))
    this.freshness = computed(() => JSON.parse(state.value) as Freshness)
  }

  /** Takes over what is known. */
  show({ info, sample }: GpuView): void {
    this.info.value = info
    if (sample === null || sample === this.sample.peek()) return
    this.processes.value = this.#known.processesOf(this.id)
    this.sample.value = sample
    const { memoryUsedBytes: used, memoryTotalBytes: total, utilizationRatio: utilization, at } = sample
    this.recent.push({ at, utilization, memory: used === null || !total ? null : used / total })
    this.recentVersion.value++
  }
}
