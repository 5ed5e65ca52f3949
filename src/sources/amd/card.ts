/** One card: its state from tick to tick, and its readings while it is awake. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { GpuInfo, GpuReadings, GpuState, Reading } from '../../core/model.ts'
import { NO_READINGS } from '../../core/record.ts'
import type { SourceTick } from '../../core/source-contract.ts'
import { errorCode } from '../../core/system-file.ts'
import { readSmallFile } from '../small-file.ts'
import { type CardFiles, closeCardFiles, findCardFiles } from './card-files.ts'
import { type AwakeFacts, gpuInfo, type Identity } from './card-info.ts'
import { CardReader } from './card-reader.ts'
import { readFacts, readFast, readSlow, type SlowReadings } from './card-readings.ts'
import type { CardPlace } from './discover.ts'
import type { KfdGpu } from './kfd.ts'

export interface CardOptions {
  readonly index: number
  readonly identity: Identity
  readonly driverVersion: string | null
  readonly kfd: KfdGpu | null
  readonly wake: boolean
  readonly slowIntervalMs: number
}

export interface CardReading {
  readonly state: GpuState
  readonly reason: string | null
  readonly readings: GpuReadings
  readonly slowAt: Reading
}

interface Awake {
  readonly files: CardFiles
  readonly facts: AwakeFacts
  slow: SlowReadings | null
  slowAt: Reading
  slowDueMs: number
}

export class Card {
  readonly options: CardOptions
  place: CardPlace
  #reader = new CardReader()
  #awake: Awake | null = null
  /** Kept through sleep, so that GpuInfo does not forget what it knew. */
  #facts: AwakeFacts | null = null
  #info: GpuInfo | null = null

  constructor(place: CardPlace, options: CardOptions) {
    this.place = place
    this.options = options
  }

  /** The same object for as long as nothing in it changed. */
  get info(): GpuInfo {
    if (this.#info === null || this.#reader.changed) {
      this.#info = gpuInfo({ ...this.options, place: this.place, facts: this.#facts, unavailable: { ...this.#reader.reasons } })
      this.#reader.changed = false
    }
    return this.#info
  }

  get apu(): boolean {
    return this.#facts?.apu ?? this.options.identity.apuModel
  }

  /** Why a field of every card is null, where the source knows it and the card does not. */
  note(field: string, reason: string | null): void {
    this.#reader.note(field, reason)
  }

  /** The card is back, maybe under another number. */
  move(place: CardPlace): void {
    this.close()
    this.place = place
    this.#info = null
  }

  close(): void {
    if (this.#awake !== null) closeCardFiles(this.#awake.files)
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
    const fast = readFast(awake.files, reader, awake.facts)
    if (tick.monotonicMs >= awake.slowDueMs) this.#readSlow(awake, tick)
    if (reader.succeeded === 0 && reader.failures.length > 0) return this.#unreadable()
    return { state: 'ok', reason: null, readings: { ...NO_READINGS, ...fast, ...awake.slow }, slowAt: awake.slowAt }
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
    if (before !== null) closeCardFiles(before.files)
    this.#reader.begin(nowMs)
    this.#reader.moved = false
    const files = findCardFiles(this.place.devicePath)
    const facts = readFacts(this.place, files, this.#reader, this.options.identity.apuModel)
    this.#facts = facts
    this.#info = null
    this.#awake = { files, facts, slow: null, slowAt: null, slowDueMs: Number.NEGATIVE_INFINITY }
    return this.#awake
  }

  #readSlow(awake: Awake, tick: SourceTick): void {
    awake.slow = readSlow(awake.files, this.#reader)
    awake.slowAt = tick.at
    awake.slowDueMs = tick.monotonicMs + this.options.slowIntervalMs
    const powerLimitWatts = this.#reader.number('powerLimitWatts', awake.files.powerCap, 1e6)
    if (this.#facts === null || this.#facts.powerLimitWatts === powerLimitWatts) return
    this.#facts = { ...this.#facts, powerLimitWatts }
    this.#info = null
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

function silent(state: GpuState, reason: string): CardReading {
  return { state, reason, readings: NO_READINGS, slowAt: null }
}
