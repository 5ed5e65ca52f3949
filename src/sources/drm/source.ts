/** The cards of one kernel driver, read through its files; no library of the vendor needed. */
import type { GpuEvent, GpuInfo, GpuProcess, GpuSample, Reading, Sample } from '../../core/model.ts'
import { NO_READINGS } from '../../core/record.ts'
import type { Source, SourceEnv, SourceKind, SourceTick } from '../../core/source-contract.ts'
import { Card, type CardReading, fallbackId } from './card.ts'
import { type CardPlace, discoverCards, listCards, samePlace } from './discover.ts'
import type { CardDriver, CardReadings, CardUsage, Identity } from './driver.ts'
import { ProcessList } from './processes.ts'

const SLOW_INTERVAL_MS = 10_000
const LOOK_FOR_NEW_MS = 5000
/** How often to look whether a lost card is back. */
const LOOK_FOR_LOST_MS = 1000

const DIVIDED = 'the card is divided: see its partitions'

export function drmSource<Known extends Identity>(driver: CardDriver<Known>): SourceKind {
  return {
    name: driver.vendor,
    async open(env) {
      const places = discoverCards(env.root, driver.pciVendor)
      return places.length === 0 ? null : new DrmSource(driver, env, places)
    },
  }
}

class DrmSource implements Source {
  readonly provenance = 'live'
  readonly #driver: CardDriver
  readonly #env: SourceEnv
  readonly #slowIntervalMs: number
  readonly #processes: ProcessList
  readonly #cards: Card[] = []
  /** What was last said of cards that are lost; they are asked again only when somebody has looked whether they are back. */
  readonly #lost = new Map<Card, CardReading>()
  #devices: readonly GpuInfo[] = []
  #cardNames: string
  #lookAtMs = Number.NEGATIVE_INFINITY

  constructor(driver: CardDriver, env: SourceEnv, places: readonly CardPlace[]) {
    this.#driver = driver
    this.#env = env
    this.#slowIntervalMs = env.options.slowIntervalMs ?? SLOW_INTERVAL_MS
    this.#processes = new ProcessList(env.root, driver)
    this.#cardNames = listCards(env.root).join()
    this.#add(places)
  }

  devices(): readonly GpuInfo[] {
    const now = this.#cards.flatMap((card) => card.infos)
    if (now.length !== this.#devices.length || now.some((info, index) => info !== this.#devices[index])) this.#devices = now
    return this.#devices
  }

  read(tick: SourceTick): readonly Sample[] {
    const looked = this.#lookForCards(tick.monotonicMs)
    const samples: Sample[] = []
    const readings = this.#cards.map((card) => (looked ? null : this.#lost.get(card)) ?? card.read(tick))
    const usages = readings.some((reading) => reading.state === 'ok') ? this.#readProcesses(tick) : null
    for (const [index, card] of this.#cards.entries()) {
      const reading = readings[index]
      if (reading === undefined) continue
      const event = this.#change(card, reading, tick.at)
      if (event !== null) samples.push(event)
      const usage = (reading.state === 'ok' && card.place.address !== null && usages?.get(card.place.address)) || null
      const used = usage === null ? null : card.awake?.readUsage?.(usage)
      const processes = this.#listedByPartition(card) ? null : (usage?.processes ?? null)
      samples.push(sampleOf(tick.at, card.info.id, reading, processes, used ?? {}))
      if (card.partitions.length > 0) this.#readPartitions(card, reading, tick, samples)
    }
    return samples
  }

  close(): void {
    this.#processes.close()
    for (const card of this.#cards) card.close()
  }

  #readPartitions(card: Card, reading: CardReading, tick: SourceTick, samples: Sample[]): void {
    for (const { facts, computeId, read } of card.partitions) {
      const processes = reading.state === 'ok' ? this.#processes.ofCompute(computeId, tick.monotonicMs) : null
      const own = reading.state === 'ok' ? { ...memoryOf(facts.memoryTotalBytes, processes), ...read() } : {}
      samples.push(sampleOf(tick.at, facts.id, { ...reading, slowAt: null, readings: own }, processes, {}))
    }
  }

  /** A process is on one partition, and counted there. */
  #listedByPartition(card: Card): boolean {
    return card.partitions.length > 0 && this.#processes.listsCompute
  }

  #readProcesses(tick: SourceTick): ReadonlyMap<string, CardUsage> | null {
    const usages = this.#processes.read(
      tick,
      this.#cards.map(({ place, options, sharesMemory }) => ({
        address: place.address,
        computeIds: options.identity.computeIds,
        sharesMemory,
      })),
    )
    for (const card of this.#cards) card.note('processes', this.#listedByPartition(card) ? DIVIDED : this.#processes.incomplete)
    return usages
  }

  /** For a card that came back, or one that was plugged in; false when it was not the time to look. */
  #lookForCards(nowMs: number): boolean {
    if (nowMs < this.#lookAtMs) return false
    this.#lookAtMs = nowMs + (this.#lost.size > 0 ? LOOK_FOR_LOST_MS : Math.min(this.#slowIntervalMs, LOOK_FOR_NEW_MS))
    const names = listCards(this.#env.root)
    if (names.join() === this.#cardNames && this.#lost.size === 0) return true
    this.#cardNames = names.join()
    const places = discoverCards(this.#env.root, this.#driver.pciVendor, names)
    for (const card of this.#lost.keys()) {
      const back = places.find((place) => samePlace(place, card.place))
      if (back !== undefined) card.move(back)
    }
    this.#add(places.filter((place) => !this.#cards.some((card) => samePlace(place, card.place))))
    return true
  }

  /** A card that is added later takes the next number: those that are shown already keep theirs. */
  #add(places: readonly CardPlace[]): void {
    for (const place of places) {
      const identity = this.#driver.identify(this.#env.root, place)
      const taken = this.#cards.some((card) => card.options.identity.id === identity.id)
      const card = new Card(place, {
        driver: this.#driver,
        index: this.#cards.length,
        identity: taken ? { ...identity, id: fallbackId(place) } : identity,
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

function sampleOf(at: number, gpu: string, reading: CardReading, processes: readonly GpuProcess[] | null, used: CardReadings): GpuSample {
  const { state, reason, slowAt, readings } = reading
  return { ...NO_READINGS, kind: 'gpu', at, gpu, state, stateReason: reason, slowAt, processes, ...readings, ...used }
}

/** Of a partition the driver tells only what its processes hold. */
function memoryOf(total: Reading, processes: readonly GpuProcess[] | null): CardReadings {
  let held: Reading = processes === null ? null : 0
  for (const { memoryUsedBytes } of processes ?? []) held = held === null || memoryUsedBytes === null ? null : held + memoryUsedBytes
  const used = held !== null && total !== null ? Math.min(held, total) : held
  return { memoryTotalBytes: total, memoryUsedBytes: used, memoryFreeBytes: used !== null && total !== null ? total - used : null }
}
