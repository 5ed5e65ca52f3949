/** While every card sleeps the driver is not touched: initializing NVML would wake a laptop's GPU and keep it awake. */
import type { GpuInfo, Sample } from '../../core/model.ts'
import type { Source, SourceTick } from '../../core/source-contract.ts'
import { UNKNOWN_SYSTEM, unknownGpu } from './info.ts'
import type { PciCard } from './pci-cards.ts'
import { silentSample } from './sample.ts'

const REASON = 'the card is asleep and was not woken'

/** Stands in until a card is awake; `wake` then gives the real source, or null when the driver knows of no GPU. */
export class AsleepSource implements Source {
  readonly provenance = 'live'
  readonly #cards: readonly PciCard[]
  readonly #wake: () => Source | null
  #devices: readonly GpuInfo[]
  #awake: Source | null = null

  constructor(cards: readonly PciCard[], wake: () => Source | null) {
    this.#cards = cards
    this.#wake = wake
    const unavailable = { name: 'the card is asleep' }
    this.#devices = cards.map(({ busId }, index) => ({
      ...unknownGpu({ id: busId, name: null, pciBusId: busId }, index, UNKNOWN_SYSTEM),
      unavailable,
    }))
  }

  devices(): readonly GpuInfo[] {
    return this.#awake?.devices() ?? this.#devices
  }

  read(tick: SourceTick): readonly Sample[] | Promise<readonly Sample[]> {
    if (this.#awake === null && this.#cards.some((card) => !card.suspended())) {
      this.#awake = this.#wake()
      if (this.#awake === null) throw new Error('NVIDIA: a card woke up, but the driver knows of no GPU: look at `dmesg | grep -i nvrm`')
    }
    if (this.#awake !== null) return this.#awake.read(tick)
    return this.#devices.map(({ id }) => silentSample(tick.at, id, 'suspended', REASON))
  }

  close(): void | Promise<void> {
    if (this.#awake !== null) return this.#awake.close()
    for (const card of this.#cards) card.close()
  }
}
