/** What a vendor says of its cards: everything else about a card of the kernel's graphics drivers is the same for all. */
import type { GpuInfo, GpuProcess, GpuReadings, Reading } from '../../core/model.ts'
import type { SourceTick } from '../../core/source-contract.ts'
import type { CardReader } from './card-reader.ts'
import type { CardPlace } from './discover.ts'
import type { DrmClient, EngineShares } from './process-use.ts'

export type CardFacts = Partial<GpuInfo>
export type CardReadings = Partial<GpuReadings>

/** From files that the driver answers out of its own memory: reading them does not wake a card that sleeps. */
export interface Identity {
  readonly id: string
  /** Its memory is the host's. */
  readonly sharesMemory: boolean
  readonly facts: CardFacts
  /** Names of the card in the list of compute processes; several when it is partitioned. */
  readonly computeIds: readonly string[]
}

/** What the processes of a card do together. */
export interface CardUsage {
  readonly processes: readonly GpuProcess[]
  readonly engines: EngineShares
  readonly heldBytes: Reading
  /** Every process can be seen, so that sums are the card's. */
  readonly complete: boolean
}

export interface AwakeCard {
  /** What is known only of a card that is awake; a new object when it changed. */
  readonly facts: CardFacts
  readonly sharesMemory: boolean
  readonly partitions: readonly Partition[]
  readFast(tick: SourceTick): CardReadings
  readSlow(tick: SourceTick): CardReadings
  /** What follows from the processes; for drivers that count nothing themselves. */
  readUsage?(usage: CardUsage): CardReadings
  close(): void
}

/** Processes that a driver lists itself, readable for everyone. */
export interface ComputeProcesses {
  list(): readonly number[]
  /** Bytes by PID on the cards with these names; files that held nothing are read only when `all`. */
  read(ids: readonly string[], nowMs: number, all: boolean): Map<number, Reading>
  close(): void
}

/** A part of a card that programs see as a device of its own. */
export interface Partition {
  readonly facts: Pick<GpuInfo, 'id' | 'mig' | 'memoryTotalBytes' | 'unavailable'>
  readonly computeId: string
  read(): CardReadings
}

export interface CardDriver<Known extends Identity = Identity> {
  /** The vendor's name. */
  readonly vendor: string
  readonly pciVendor: string
  /** What fdinfo of an open device file says; null when it is not this driver's. */
  parseClient(fields: ReadonlyMap<string, string>): DrmClient | null
  identify(root: string, place: CardPlace): Known
  awaken(place: CardPlace, reader: CardReader, identity: Known): AwakeCard
  /** The driver's own list of compute processes, and the device file that each of them has open. */
  readonly compute?: { readonly deviceFile: string; open(root: string): ComputeProcesses }
  /** Why some processes are not listed. */
  readonly hiddenProcesses: string
}
