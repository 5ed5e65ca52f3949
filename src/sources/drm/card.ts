/** One card: its state from tick to tick, and its readings while it is awake. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { GpuInfo, GpuState, Reading } from '../../core/model.ts'
import { NO_FACTS } from '../../core/record.ts'
import type { SourceTick } from '../../core/source-contract.ts'
import { errorCode } from '../../core/system-file.ts'
import { readSmallFile } from '../small-file.ts'
import { CardReader } from './card-reader.ts'
import type { CardPlace } from './discover.ts'
import type { AwakeCard, CardDriver, CardFacts, CardReadings, Identity, Partition } from './driver.ts'
import { pciBusId } from './parse.ts'

export interface CardOptions {
  readonly driver: CardDriver
  readonly index: number
  readonly identity: Identity
  readonly wake: boolean
  readonly slowIntervalMs: number
}

export interface CardReading {
  readonly state: GpuState
  readonly reason: string | null
  /** Of this tick, and those that are read rarely. */
  readonly readings: CardReadings
  readonly slow: CardReadings
  readonly slowAt: Reading
}

interface Awake {
  readonly card: AwakeCard
  slow: CardReadings
  slowAt: Reading
  slowDueMs: number
}

const NOTHING: CardReadings = {}

export class Card {
  readonly options: CardOptions
  place: CardPlace
  #reader = new CardReader()
  #awake: Awake | null = null
  /** Kept through sleep, so that GpuInfo does not forget what it knew. */
  #facts: CardFacts | null = null
  #sharesMemory: boolean
  #infos: readonly GpuInfo[] | null = null

  constructor(place: CardPlace, options: CardOptions) {
    this.place = place
    this.options = options
    this.#sharesMemory = options.identity.sharesMemory
  }

  /** The card and then its partitions; the same objects for as long as nothing in them changed. */
  get infos(): readonly GpuInfo[] {
    if (this.#infos === null || this.#reader.changed) {
      const info = this.#makeInfo()
      this.#infos = [info, ...this.partitions.map((partition) => partitionInfo(info, partition))]
      this.#reader.changed = false
    }
    return this.#infos
  }

  get info(): GpuInfo {
    return this.infos[0] as GpuInfo
  }

  get sharesMemory(): boolean {
    return this.#sharesMemory
  }

  get partitions(): readonly Partition[] {
    return this.#awake?.card.partitions ?? []
  }

  get awake(): AwakeCard | null {
    return this.#awake?.card ?? null
  }

  /** Why a field of every card is null, where the source knows it and the card does not. */
  note(field: string, reason: string | null): void {
    this.#reader.note(field, reason)
  }

  /** The card is back, maybe under another number. */
  move(place: CardPlace): void {
    this.close()
    this.place = place
    this.#infos = null
  }

  close(): void {
    if (this.partitions.length > 0) this.#infos = null
    this.#awake?.card.close()
    this.#awake = null
  }

  /** Learns what can be known before the first tick. */
  prepare(): void {
    if (this.#presence() === 'awake') this.#awaken(Number.NEGATIVE_INFINITY)
  }

  read(tick: SourceTick): CardReading {
    const presence = this.#presence()
    if (presence === 'gone') return this.#lost('its sysfs folder is gone: the card fell off the bus or its driver was unloaded')
    if (presence === 'asleep') return silent('suspended', 'asleep to save power; reading it would wake it')
    const reader = this.#reader
    const awake = this.#awaken(tick.monotonicMs)
    reader.begin(tick.monotonicMs)
    const fast = awake.card.readFast(tick)
    if (tick.monotonicMs >= awake.slowDueMs) {
      awake.slow = awake.card.readSlow(tick)
      awake.slowAt = tick.at
      awake.slowDueMs = tick.monotonicMs + this.options.slowIntervalMs
    }
    if (awake.card.facts !== this.#facts) this.#learn(awake.card)
    if (reader.succeeded === 0 && reader.failures.length > 0) return this.#unreadable()
    return { state: 'ok', reason: null, readings: fast, slow: awake.slow, slowAt: awake.slowAt }
  }

  #presence(): 'awake' | 'asleep' | 'gone' {
    try {
      const status = readSmallFile(join(this.place.devicePath, 'power/runtime_status'))
      return status.startsWith('suspend') && !this.options.wake ? 'asleep' : 'awake'
    } catch (error) {
      if (errorCode(error) === 'ENODEV') return 'gone'
      return existsSync(join(this.place.devicePath, 'vendor')) ? 'awake' : 'gone'
    }
  }

  #awaken(nowMs: number): Awake {
    const before = this.#awake
    if (before !== null && !(this.#reader.moved && nowMs >= before.slowDueMs)) return before
    before?.card.close()
    this.#reader.begin(nowMs)
    this.#reader.moved = false
    const card = this.options.driver.awaken(this.place, this.#reader, this.options.identity)
    this.#awake = { card, slow: {}, slowAt: null, slowDueMs: Number.NEGATIVE_INFINITY }
    this.#learn(card)
    return this.#awake
  }

  #learn(card: AwakeCard): void {
    this.#facts = card.facts
    this.#sharesMemory = card.sharesMemory
    this.#infos = null
  }

  #makeInfo(): GpuInfo {
    const { place } = this
    const { driver, index, identity } = this.options
    return {
      index,
      label: String(index),
      vendor: driver.vendor,
      provenance: 'live',
      ...NO_FACTS,
      pciBusId: place.address === null ? null : pciBusId(place.address),
      minor: place.minor,
      ...identity.facts,
      ...this.#facts,
      id: identity.id,
      unifiedMemory: this.sharesMemory,
      unavailable: { ...this.#reader.reasons },
    }
  }

  #lost(reason: string): CardReading {
    this.close()
    return silent('lost', reason)
  }

  #unreadable(): CardReading {
    const said = [...new Set(this.#reader.failures.map((file) => file.code))]
    if (said.includes('ENODEV')) return this.#lost(`the driver says that the card is gone (${said.join(', ')})`)
    return silent('error', `none of its files can be read (${said.join(', ')}); the driver may be resetting the card`)
  }
}

/** Where a board has no number of its own, its slot is its identity. */
export function fallbackId(place: CardPlace): string {
  return place.address === null ? `card${place.minor}` : pciBusId(place.address)
}

function partitionInfo(card: GpuInfo, { facts }: Partition): GpuInfo {
  const { index, vendor, provenance, name, pciBusId, minor, serial, driverVersion, architecture, unifiedMemory } = card
  const known = { name, pciBusId, minor, serial, driverVersion, architecture, unifiedMemory }
  return { ...NO_FACTS, index, vendor, provenance, ...known, label: `${index}:${facts.mig?.gpuInstanceId}`, ...facts }
}

function silent(state: GpuState, reason: string): CardReading {
  return { state, reason, readings: NOTHING, slow: NOTHING, slowAt: null }
}
