/** AMD cards through the files of the amdgpu driver; no ROCm needed. */
import type { GpuEvent, GpuInfo, Sample } from '../../core/model.ts'
import type { Source, SourceEnv, SourceKind, SourceTick } from '../../core/source-contract.ts'
import { Card, type CardReading } from './card.ts'
import { fallbackId, readDriverVersion, readIdentity } from './card-info.ts'
import { type CardPlace, discoverCards, listCards } from './discover.ts'
import { type KfdGpu, readTopology } from './kfd.ts'
import { ProcessList } from './processes.ts'

const SLOW_INTERVAL_MS = 10_000
const LOOK_FOR_NEW_MS = 5000
/** How often to look whether a lost card is back. */
const LOOK_FOR_LOST_MS = 1000

export const amd: SourceKind = {
  name: 'amd',
  async open(env) {
    const places = discoverCards(env.root)
    return places.length === 0 ? null : new AmdSource(env, places)
  },
}

class AmdSource implements Source {
  readonly provenance = 'live'
  readonly #env: SourceEnv
  readonly #slowIntervalMs: number
  readonly #processes: ProcessList
  readonly #cards: Card[] = []
  /** What was last said of cards that are lost; they are asked again only when somebody has looked whether they are back. */
  readonly #lost = new Map<Card, CardReading>()
  #devices: readonly GpuInfo[] = []
  #cardNames: string
  #lookAtMs = Number.NEGATIVE_INFINITY

  constructor(env: SourceEnv, places: readonly CardPlace[]) {
    this.#env = env
    this.#slowIntervalMs = env.options.slowIntervalMs ?? SLOW_INTERVAL_MS
    this.#processes = new ProcessList(env.root)
    this.#cardNames = listCards(env.root).join()
    this.#add(places)
  }

  devices(): readonly GpuInfo[] {
    const now = this.#cards.map((card) => card.info)
    if (now.length !== this.#devices.length || now.some((info, index) => info !== this.#devices[index])) this.#devices = now
    return this.#devices
  }

  read(tick: SourceTick): readonly Sample[] {
    const looked = this.#lookForCards(tick.monotonicMs)
    const samples: Sample[] = []
    const readings = this.#cards.map((card) => (looked ? null : this.#lost.get(card)) ?? card.read(tick))
    const processes = readings.some((reading) => reading.state === 'ok') ? this.#readProcesses(tick) : null
    for (const [index, card] of this.#cards.entries()) {
      const reading = readings[index]
      if (reading === undefined) continue
      const event = this.#change(card, reading, tick.at)
      if (event !== null) samples.push(event)
      const listed = reading.state === 'ok' && card.place.address !== null ? processes?.get(card.place.address) : null
      samples.push({
        kind: 'gpu',
        at: tick.at,
        gpu: card.info.id,
        state: reading.state,
        stateReason: reading.reason,
        slowAt: reading.slowAt,
        processes: listed ?? null,
        ...reading.readings,
      })
    }
    return samples
  }

  close(): void {
    this.#processes.close()
    for (const card of this.#cards) card.close()
  }

  #readProcesses(tick: SourceTick) {
    const cards = this.#cards.map((card) => ({ address: card.place.address, kfdIds: card.options.kfd?.ids ?? [], apu: card.apu }))
    const processes = this.#processes.read(tick, cards)
    for (const card of this.#cards) card.note('processes', this.#processes.incomplete)
    return processes
  }

  /** For a card that came back, or one that was plugged in; false when it was not the time to look. */
  #lookForCards(nowMs: number): boolean {
    if (nowMs < this.#lookAtMs) return false
    this.#lookAtMs = nowMs + (this.#lost.size > 0 ? LOOK_FOR_LOST_MS : Math.min(this.#slowIntervalMs, LOOK_FOR_NEW_MS))
    const names = listCards(this.#env.root)
    if (names.join() === this.#cardNames && this.#lost.size === 0) return true
    this.#cardNames = names.join()
    const places = discoverCards(this.#env.root, names)
    for (const card of this.#lost.keys()) {
      const back = places.find((place) => samePlace(place, card.place))
      if (back !== undefined) card.move(back)
    }
    this.#add(places.filter((place) => !this.#cards.some((card) => samePlace(place, card.place))))
    return true
  }

  /** A card that is added later takes the next number: those that are shown already keep theirs. */
  #add(places: readonly CardPlace[]): void {
    if (places.length === 0) return
    const topology: ReadonlyMap<string, KfdGpu> = readTopology(this.#env.root)
    const driverVersion = readDriverVersion(this.#env.root)
    for (const place of places) {
      const identity = readIdentity(place)
      const taken = this.#cards.some((card) => card.options.identity.id === identity.id)
      const card = new Card(place, {
        index: this.#cards.length,
        identity: taken ? { ...identity, id: fallbackId(place) } : identity,
        driverVersion,
        kfd: place.address === null ? null : (topology.get(place.address) ?? null),
        wake: this.#env.options.wake === true,
        slowIntervalMs: this.#slowIntervalMs,
      })
      card.prepare()
      this.#cards.push(card)
    }
  }

  #change(card: Card, reading: CardReading, at: number): GpuEvent | null {
    const { state, reason } = reading
    const wasLost = this.#lost.has(card)
    if (state === 'lost' && !wasLost) {
      this.#lost.set(card, reading)
      this.#lookAtMs = Number.NEGATIVE_INFINITY
      return this.#event(card, 'lost', `${card.info.name} (GPU ${card.info.label}) is lost: ${reason}`, at)
    }
    if (wasLost && state !== 'lost' && state !== 'error') {
      this.#lost.delete(card)
      return this.#event(card, 'recovered', `${card.info.name} (GPU ${card.info.label}) is back`, at)
    }
    return null
  }

  #event(card: Card, event: 'lost' | 'recovered', message: string, at: number): GpuEvent {
    this.#env.log(event === 'lost' ? 'error' : 'info', message, { gpu: card.info.id })
    return { kind: 'event', at, gpu: card.info.id, event, code: null, message, origin: 'sysfs' }
  }
}

function samePlace(a: CardPlace, b: CardPlace): boolean {
  return a.address === null ? b.address === null && a.minor === b.minor : a.address === b.address
}
