/** A card that is awake: its files, what they tell once, and what they tell at every tick. */
import { join } from 'node:path'
import type { Reading } from '../../core/model.ts'
import type { SourceTick } from '../../core/source-contract.ts'
import type { CardReader } from '../drm/card-reader.ts'
import type { CardPlace } from '../drm/discover.ts'
import type { AwakeCard, CardFacts, CardReadings, CardUsage } from '../drm/driver.ts'
import { parsePcieGeneration, parsePcieWidth } from '../drm/parse.ts'
import { add, atMostOne } from '../drm/process-use.ts'
import { type HostMemory, openHostMemory } from '../host-memory.ts'
import { tryReadSmallFile } from '../small-file.ts'
import { bridgeFolder, type CardFiles, closeCardFiles, findCardFiles } from './card-files.ts'
import { closeGts, findGts, type GtFiles } from './gt-files.ts'
import type { IntelIdentity } from './identity.ts'
import { reasonOf } from './throttle.ts'

interface Counted {
  readonly atMs: number
  readonly energyJoules: Reading
  readonly asleepMs: Reading
}

export class IntelCard implements AwakeCard {
  readonly partitions = []
  readonly sharesMemory: boolean
  facts: CardFacts
  readonly #place: CardPlace
  readonly #files: CardFiles
  readonly #gts: readonly GtFiles[]
  readonly #reader: CardReader
  readonly #hostMemory: HostMemory | null
  #memoryTotalBytes: Reading
  #before: Counted | null = null

  constructor(place: CardPlace, reader: CardReader, { root, sharesMemory }: IntelIdentity) {
    this.sharesMemory = sharesMemory
    this.#place = place
    this.#reader = reader
    this.#files = findCardFiles(root, place)
    this.#gts = findGts(place, sharesMemory)
    this.#hostMemory = sharesMemory ? openHostMemory(root) : null
    this.#memoryTotalBytes = this.#files.limits.memoryTotalBytes ?? this.#managed('size')
    if (sharesMemory) this.#memoryTotalBytes = this.#hostMemory?.read()?.totalBytes ?? null
    noteMissing(this.#files, this.#gts, reader, this.#memoryTotalBytes)
    this.facts = this.#readFacts()
  }

  readFast({ monotonicMs }: SourceTick): CardReadings {
    const reader = this.#reader
    const files = this.#files
    const [clock, videoClock] = [this.#clock(false), this.#clock(true)]
    const now: Counted = {
      atMs: monotonicMs,
      energyJoules: reader.number('energyJoules', files.energy, 1e6),
      asleepMs: this.#asleepMs(),
    }
    const before = this.#before
    this.#before = now
    const elapsedMs = before === null ? 0 : now.atMs - before.atMs
    const grown = (from: Reading | undefined, to: Reading): Reading =>
      from === undefined || from === null || to === null || to < from || elapsedMs <= 0 ? null : to - from
    const joules = grown(before?.energyJoules, now.energyJoules)
    const asleep = grown(before?.asleepMs, now.asleepMs)
    return {
      // What the processes did is nearer to the truth, where all of them can be seen.
      utilizationRatio: asleep === null ? null : Math.max(0, 1 - Math.min(1, asleep / elapsedMs)),
      ...this.#memory(null),
      temperatureCelsius: reader.number('temperatureCelsius', files.temperature, 1000),
      memoryTemperatureCelsius: reader.number('memoryTemperatureCelsius', files.memoryTemperature, 1000),
      powerWatts:
        files.power === null ? (joules === null ? null : (joules * 1000) / elapsedMs) : reader.number('powerWatts', files.power, 1e6),
      fanRatio: files.fanMax === null ? null : reader.ratio('fanRatio', files.fan, files.fanMax),
      fanRpm: reader.number('fanRpm', files.fan, 1),
      graphicsClockHertz: clock,
      smClockHertz: clock,
      videoClockHertz: videoClock,
      clockEventReasons: this.#clockEventReasons(),
    }
  }

  readSlow(): CardReadings {
    const powerLimitWatts = this.#powerLimit()
    if (powerLimitWatts !== this.facts.powerLimitWatts) this.facts = { ...this.facts, powerLimitWatts }
    return { energyJoules: this.#before?.energyJoules ?? null, ...this.#link('current') }
  }

  /** The engines and the memory of the card are what its processes use of them; without root only some of them are seen. */
  readUsage({ processes, engines, heldBytes, complete }: CardUsage): CardReadings {
    if (!complete) return {}
    const used = processes.length === 0 ? 0 : null
    const busy = atMostOne(add(engines.graphics, engines.compute)) ?? used
    return {
      ...(busy === null ? {} : { utilizationRatio: busy }),
      decoderRatio: engines.decoder ?? used,
      ...this.#memory(heldBytes ?? used),
    }
  }

  close(): void {
    closeCardFiles(this.#files)
    closeGts(this.#gts)
    this.#hostMemory?.close()
  }

  #readFacts(): CardFacts {
    const { limits } = this.#files
    const link = this.#link('max')
    return {
      memoryTotalBytes: this.#memoryTotalBytes,
      powerLimitWatts: this.#powerLimit(),
      powerLimitDefaultWatts: limits.powerRatedWatts,
      smClockMaxHertz: this.#maxHertz(),
      temperatureMaxCelsius: limits.temperatureMax,
      temperatureSlowdownCelsius: limits.temperatureCritical,
      temperatureShutdownCelsius: limits.temperatureEmergency,
      memoryTemperatureMaxCelsius: limits.memoryTemperatureCritical,
      pcieGenerationMax: link.pcieGeneration ?? null,
      pcieWidthMax: link.pcieWidth ?? null,
    }
  }

  /** 0 is no limit. */
  #powerLimit(): Reading {
    return this.#reader.number('powerLimitWatts', this.#files.powerLimit, 1e6) || null
  }

  #maxHertz(): Reading {
    const hertz = this.#gts.filter(({ media }) => !media).map((gt) => this.#reader.number('smClockMaxHertz', gt.clockMax, 1e-6) ?? 0)
    return Math.max(0, ...hertz) || null
  }

  /** The fastest of the units of one kind. */
  #clock(media: boolean): Reading {
    const field = media ? 'videoClockHertz' : 'graphicsClockHertz'
    let fastest: Reading = null
    for (const gt of this.#gts) {
      const hertz = gt.media === media ? this.#reader.number(field, gt.clock, 1e-6) : null
      if (hertz !== null) fastest = Math.max(fastest ?? 0, hertz)
    }
    return fastest
  }

  /** Of the unit that slept least: as long as one works, the GPU does. */
  #asleepMs(): Reading {
    const gt = this.#gts.find(({ media, asleep }) => !media && asleep !== null)
    return gt === undefined ? null : this.#reader.number('utilizationRatio', gt.asleep, 1)
  }

  #clockEventReasons(): Reading {
    let reasons: Reading = null
    for (const { throttled, reasons: files } of this.#gts) {
      const status = this.#reader.number('clockEventReasons', throttled, 1)
      if (status === null) continue
      reasons ??= 0
      if (status !== 0)
        for (const [name, file] of files) if (this.#reader.number('clockEventReasons', file, 1) === 1) reasons |= reasonOf(name)
    }
    return reasons
  }

  /** As the kernel counts it; else what the processes hold together. */
  #memory(heldBytes: Reading): CardReadings {
    const total = this.#memoryTotalBytes
    const used = this.sharesMemory ? (this.#hostMemory?.read()?.usedBytes ?? null) : (this.#usedBytes() ?? heldBytes)
    const within = used !== null && total !== null ? Math.min(used, total) : used
    return {
      memoryTotalBytes: total,
      memoryUsedBytes: within,
      memoryFreeBytes: within !== null && total !== null ? total - within : null,
    }
  }

  #usedBytes(): Reading {
    const { memoryAvailable } = this.#files
    const total = this.#memoryTotalBytes
    if (memoryAvailable === null || total === null) return this.#managed('usage')
    const available = this.#reader.number('memoryUsedBytes', memoryAvailable, 1)
    return available === null ? null : Math.max(0, total - available)
  }

  /** A figure of xe's memory managers, over all tiles. */
  #managed(name: 'size' | 'usage'): Reading {
    let sum: Reading = null
    for (const file of this.#files.memoryManagers) {
      const match = new RegExp(`^\\s*${name}:\\s*(\\d{1,18})\\s*$`, 'm').exec(this.#reader.text(file))
      if (match === null) return null
      sum = (sum ?? 0) + Number(match[1])
    }
    return sum
  }

  #link(which: 'current' | 'max'): CardReadings {
    const read = (folder: string) => ({
      pcieGeneration: parsePcieGeneration(tryReadSmallFile(join(folder, `${which}_link_speed`)) ?? ''),
      pcieWidth: parsePcieWidth(tryReadSmallFile(join(folder, `${which}_link_width`)) ?? ''),
    })
    const own = read(this.#place.devicePath)
    return own.pcieGeneration === 1 && own.pcieWidth === 1 ? read(bridgeFolder(this.#place)) : own
  }
}

const NO_SENSOR = 'the driver shows no such sensor (hwmon) for this card'

function noteMissing(files: CardFiles, gts: readonly GtFiles[], reader: CardReader, total: Reading): void {
  if (files.temperature === null) reader.note('temperatureCelsius', NO_SENSOR)
  if (files.memoryTemperature === null) reader.note('memoryTemperatureCelsius', NO_SENSOR)
  if (files.power === null && files.energy === null) reader.note('powerWatts', NO_SENSOR)
  if (files.powerLimit === null) reader.note('powerLimitWatts', NO_SENSOR)
  if (files.fanMax === null)
    reader.note('fanRatio', files.fan === null ? NO_SENSOR : 'the driver tells the speed (fanRpm), not its maximum')
  if (total === null) reader.note('memoryTotalBytes', 'the driver tells it to root alone (debugfs), or not at all')
  if (gts.every(({ throttled }) => throttled === null)) reader.note('clockEventReasons', 'the driver does not tell it for this card')
  reader.note('memoryClockHertz', 'the driver does not tell it')
  reader.note('memoryUtilizationRatio', 'the driver does not tell it')
  reader.note('encoderRatio', 'one video engine decodes and encodes: see decoderRatio')
}
