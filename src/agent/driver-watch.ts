/** Watches what the kernel says of the cards and their drivers: rows for cards that no driver answers for, and a new try when that changes. */
import type { GpuInfo, GpuSample, SourceHealth } from '../core/model.ts'
import { NO_FACTS, NO_READINGS } from '../core/record.ts'
import type { Vendor } from '../core/vendor.ts'
import { signsOf, undrivenInWords } from '../sources/driver-fault.ts'
import { type BusCard, PciBus } from '../sources/pci-bus.ts'

/** While a card has no driver, or its driver does not answer. */
const LOOK_AGAIN_MS = 2000
/** Otherwise: for a card that is plugged in or taken away. A look costs about as much as two samples of a GPU. */
const LOOK_EVERY_MS = 6000
const NONE_LISTED = { devices: [], restarts: 0 }

export interface DriverWatchOptions {
  readonly root: string
  readonly vendors: readonly Vendor[]
  /** Of NVML, where somebody named it. */
  readonly library: string | null
  readonly now: () => number
  readonly health: () => readonly SourceHealth[]
  /** A driver seems to have come or changed. */
  readonly onSigns: (source: string) => void
  /** `rows`: cards without a driver. */
  readonly onRows: (source: string, rows: readonly GpuInfo[], samples: readonly GpuSample[]) => void
}

interface Row {
  readonly card: BusCard
  readonly reason: string
}

export class DriverWatch {
  readonly #options: DriverWatchOptions
  readonly #bus: PciBus
  readonly #signs = new Map<string, string>()
  /** What a source lists itself, and how often it had been restarted by then. */
  readonly #listed = new Map<string, { readonly devices: readonly GpuInfo[]; readonly restarts: number }>()
  readonly #shown = new Map<string, string>()
  #timer: NodeJS.Timeout | null = null

  constructor(options: DriverWatchOptions) {
    this.#options = options
    this.#bus = new PciBus(options.root)
    this.#changed(this.#bus.cards())
  }

  /** Of any supported vendor, in whatever use. */
  hasCards(): boolean {
    return this.#bus.cards().length > 0
  }

  /** What people may wonder about, though nothing is wrong. */
  notes(): readonly string[] {
    const cards = this.#bus.cards()
    return this.#options.vendors.flatMap(({ name, title }) => {
      const given = cards.filter(({ vendor, use }) => vendor === name && use === 'vm')
      if (given.length === 0) return []
      const drivers = [...new Set(given.map(({ driver }) => driver))].join(', ')
      return `${given.length} ${title} ${given.length === 1 ? 'card is' : 'cards are'} given to a VM (${drivers}) and not watched`
    })
  }

  /** The cards that a source lists itself; rows that stood in for them go. */
  note(source: string, devices: readonly GpuInfo[]): void {
    this.#listed.set(source, { devices, restarts: this.#healthOf(source)?.restarts ?? 0 })
    const vendor = this.#options.vendors.find(({ name }) => name === source)
    if (vendor) this.#show(vendor, this.#bus.cards())
  }

  start(): void {
    const cards = this.look()
    const isCalm = cards.every(({ use }) => use !== 'undriven') && this.#options.health().every(({ state }) => !isDown(state))
    this.#timer = setTimeout(() => this.start(), isCalm ? LOOK_EVERY_MS : LOOK_AGAIN_MS).unref()
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  look(): readonly BusCard[] {
    const cards = this.#bus.cards()
    for (const source of this.#changed(cards)) this.#options.onSigns(source)
    for (const vendor of this.#options.vendors) this.#show(vendor, cards)
    return cards
  }

  #healthOf(name: string): SourceHealth | undefined {
    return this.#options.health().find(({ source }) => source === name)
  }

  /** Vendors whose signs differ from those of the last look. */
  #changed(cards: readonly BusCard[]): string[] {
    const { vendors, root, library } = this.#options
    return vendors
      .filter((vendor) => {
        const signs = signsOf(vendor, cards, root, library)
        const isChanged = this.#signs.get(vendor.name) !== signs
        this.#signs.set(vendor.name, signs)
        return isChanged
      })
      .map(({ name }) => name)
  }

  #rows(vendor: Vendor, cards: readonly BusCard[]): readonly Row[] {
    const health = this.#healthOf(vendor.name)
    const { devices, restarts } = this.#listed.get(vendor.name) ?? NONE_LISTED
    const isFaulty = health !== undefined && isDown(health.state)
    // A source that had its GPUs and fails shows them as it last saw them, until opening it fails as well.
    const isShut = isFaulty && (devices.length === 0 || (health.state === 'failed' && health.restarts > restarts + 1))
    return cards
      .filter((card) => {
        if (card.vendor !== vendor.name || card.use === 'vm' || card.use === 'display') return false
        // In a container the bus shows cards that belong to others; the driver knows which are ours.
        return isShut || (card.use === 'undriven' && !devices.some(({ pciBusId }) => pciBusId === card.busId))
      })
      .map((card) => ({ card, reason: (isFaulty ? health.message : null) ?? undrivenInWords(vendor, [card]) }))
  }

  #show(vendor: Vendor, cards: readonly BusCard[]): void {
    const { now, onRows } = this.#options
    const { name, title } = vendor
    const rows = this.#rows(vendor, cards)
    const { devices: listed } = this.#listed.get(name) ?? NONE_LISTED
    const known = new Map(listed.map((info) => [info.pciBusId, info.id]))
    const own = rows.filter(({ card }) => !known.has(card.busId)).map(({ card }) => card)
    if (rows.length === 0 && (this.#shown.get(name) ?? '') === '') return
    this.#shown.set(name, rows.map(({ card }) => card.busId).join())
    const at = now()
    onRows(
      name,
      own.map((card, index) => rowOf(card, listed.length + index, title)),
      rows.map(({ card, reason }) => silentSample(known.get(card.busId) ?? card.busId, at, reason)),
    )
  }
}

function isDown(state: SourceHealth['state']): boolean {
  return state !== 'ok' && state !== 'starting'
}

function rowOf({ busId, model, vendor }: BusCard, index: number, title: string): GpuInfo {
  const name = `${title} card ${model}`
  return { ...NO_FACTS, id: busId, pciBusId: busId, index, label: String(index), name, vendor, provenance: 'live' }
}

function silentSample(gpu: string, at: number, stateReason: string): GpuSample {
  return { kind: 'gpu', at, gpu, state: 'no_driver', stateReason, slowAt: null, processes: null, ...NO_READINGS }
}
