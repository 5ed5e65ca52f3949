/** Keeps the identity of cards over a restart: a driver may not know it for a card that is lost or asleep, but knows its address. */
import { z } from 'zod'
import { KeptFile } from '../core/kept-file.ts'
import type { Log } from '../core/kinds.ts'
import type { GpuInfo, Sample } from '../core/model.ts'
import { readOwnFile } from '../core/system-file.ts'

const MOST_CARDS = 256
const VERSION = 1

const card = z.object({
  id: z.string().min(1).max(200),
  vendor: z.string(),
  index: z.number().int().min(0),
  pciBusId: z.string().nullable(),
  minor: z.number().nullable(),
  serial: z.string().nullable(),
  name: z.string().nullable(),
})
const content = z.object({ version: z.literal(VERSION), cards: z.array(card).max(MOST_CARDS) })

type Card = z.infer<typeof card>

export interface KnownCardsOptions {
  /** null: they are known as long as this process runs. */
  readonly file: string | null
  readonly log: Log
}

export class KnownCards {
  readonly #options: KnownCardsOptions
  readonly #cards: Map<string, Card>
  /** By source: what it calls a card, and who that is. */
  readonly #renamed = new Map<string, ReadonlyMap<string, string>>()
  readonly #file: KeptFile | null
  #hasFailed = false
  #written: Promise<void> = Promise.resolve()

  constructor(options: KnownCardsOptions) {
    this.#options = options
    this.#file = options.file === null ? null : new KeptFile(options.file, { mode: 0o640, folderMode: 0o750, flush: false })
    this.#cards = new Map(this.#read().map((one) => [one.id, one]))
  }

  /** The devices of a source under their own names; those that have them are remembered. */
  devices(source: string, devices: readonly GpuInfo[]): readonly GpuInfo[] {
    const certain = devices.filter((device) => isRemembered(device) && !isMakeshift(device))
    const taken = new Set(certain.map(({ id }) => id))
    const renamed = new Map<string, string>()
    const named = devices.map((device) => {
      const known = isRemembered(device) && isMakeshift(device) ? this.#find(device, taken) : undefined
      if (!known || known.id === device.id) return device
      taken.add(known.id)
      renamed.set(device.id, known.id)
      const { id, pciBusId, minor, serial, name } = known
      const unavailable = Object.fromEntries(Object.entries(device.unavailable).filter(([field]) => field !== 'name' || name === null))
      return {
        ...device,
        id,
        pciBusId,
        minor: device.minor ?? minor,
        serial: device.serial ?? serial,
        name: name ?? device.name,
        unavailable,
      }
    })
    this.#renamed.set(source, renamed)
    this.#remember(certain)
    return renamed.size === 0 ? devices : named
  }

  /** What a source measured, under the same names; the very same list where there is nothing to rename. */
  samples(source: string, samples: readonly Sample[]): readonly Sample[] {
    const renamed = this.#renamed.get(source)
    if (renamed === undefined || renamed.size === 0) return samples
    return samples.map((sample) => {
      const id = (sample.kind === 'gpu' || sample.kind === 'event') && sample.gpu !== null ? renamed.get(sample.gpu) : undefined
      return id === undefined ? sample : ({ ...sample, gpu: id } as Sample)
    })
  }

  /** What was learned so far is in the file, or cannot be kept. */
  written(): Promise<void> {
    return this.#written
  }

  #find(device: GpuInfo, taken: ReadonlySet<string>): Card | undefined {
    const free = [...this.#cards.values()].filter((one) => one.vendor === device.vendor && !taken.has(one.id))
    return device.pciBusId === null ? free.find((one) => one.index === device.index) : free.find((one) => one.pciBusId === device.pciBusId)
  }

  #remember(devices: readonly GpuInfo[]): void {
    let isChanged = false
    for (const { id, vendor, index, pciBusId, minor, serial, name } of devices) {
      const now: Card = { id, vendor, index, pciBusId, minor, serial, name }
      if (JSON.stringify(this.#cards.get(id)) === JSON.stringify(now)) continue
      // Another card has taken the slot.
      for (const other of this.#cards.values())
        if (other.id !== id && other.vendor === vendor && pciBusId !== null && other.pciBusId === pciBusId) this.#cards.delete(other.id)
      this.#cards.delete(id)
      this.#cards.set(id, now)
      isChanged = true
    }
    for (const id of this.#cards.keys()) {
      if (this.#cards.size <= MOST_CARDS) break
      this.#cards.delete(id)
    }
    if (isChanged) this.#written = this.#write()
  }

  #read(): readonly Card[] {
    const { file, log } = this.#options
    if (file === null) return []
    try {
      return content.parse(JSON.parse(readOwnFile(file))).cards
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        log.warn({ err: error, file }, 'the known cards cannot be read; they are learned again')
      return []
    }
  }

  async #write(): Promise<void> {
    const { file, log } = this.#options
    try {
      await this.#file?.save(() => `${JSON.stringify({ version: VERSION, cards: [...this.#cards.values()] }, null, 2)}\n`)
      this.#hasFailed = false
    } catch (error) {
      if (!this.#hasFailed) log.warn({ err: error, file }, 'the known cards cannot be saved')
      this.#hasFailed = true
    }
  }
}

/** Simulated cards have names of their own, and an instance goes with its card. */
function isRemembered({ provenance, mig }: GpuInfo): boolean {
  return provenance === 'live' && mig === null
}

/** A name that stands for "whoever is there": a place rather than an identity. */
function isMakeshift({ id, vendor, index, pciBusId }: GpuInfo): boolean {
  return id === `${vendor}-${index}` || id === pciBusId
}
