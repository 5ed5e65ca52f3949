/** A card that is awake: its files, what they tell once, and what they tell at every tick. */
import { join } from 'node:path'
import type { Reading } from '../../core/model.ts'
import type { SourceTick } from '../../core/source-contract.ts'
import type { Attribute } from '../drm/attribute.ts'
import type { CardReader } from '../drm/card-reader.ts'
import type { CardPlace } from '../drm/discover.ts'
import type { AwakeCard, CardFacts, CardReadings, Partition } from '../drm/driver.ts'
import { parseName, parsePcieGeneration, parsePcieWidth } from '../drm/parse.ts'
import { tryReadSmallFile } from '../small-file.ts'
import { type CardFiles, closeCardFiles, findCardFiles } from './card-files.ts'
import { isApuTable, type Metrics, parseMetrics, parseMetricsHeader } from './gpu-metrics.ts'
import type { AmdIdentity } from './identity.ts'
import { parseClockLevels, parseErrorCounts, parseOverdriveMax } from './parse.ts'
import { partitionsOf, xcdReadings } from './partitions.ts'
import { type ChipThrottlers, chipThrottlers, residencyReasons, tellsThrottling, throttleReasons } from './throttle.ts'

/** Of the hottest spot, where the card does not say its own. */
const USUAL_JUNCTION_LIMIT_CELSIUS = 100

export class AmdCard implements AwakeCard {
  readonly sharesMemory: boolean
  readonly partitions: readonly Partition[]
  facts: CardFacts
  readonly #files: CardFiles
  readonly #reader: CardReader
  readonly #chip: ChipThrottlers
  readonly #memoryTotalBytes: Reading
  readonly #readsMetrics: boolean
  #metrics: { readonly table: Metrics; readonly atMs: number } | null = null

  constructor(place: CardPlace, reader: CardReader, identity: AmdIdentity) {
    const files = findCardFiles(place.devicePath)
    this.#files = files
    this.#reader = reader
    this.#chip = chipThrottlers(identity.target)
    const bytes = reader.bytes(files.metrics)
    const header = bytes === null ? null : parseMetricsHeader(bytes)
    const table = bytes === null ? null : parseMetrics(bytes)
    this.sharesMemory = identity.sharesMemory || (header !== null && isApuTable(header))
    this.#readsMetrics = table !== null && (tellsThrottling(table, this.#chip) || table.xgmiReadBytes !== null)
    this.#memoryTotalBytes = reader.sum('memoryTotalBytes', this.#memoryFiles(files.vramTotal, files.gttTotal))
    noteMissing(files, reader)
    if (table === null || !tellsThrottling(table, this.#chip))
      reader.note(
        'clockEventReasons',
        header === null
          ? 'the driver has no gpu_metrics for this card'
          : `gpu_metrics ${header.format}.${header.content} does not tell it for this chip`,
      )
    const partitioning = readPartitioning(place)
    this.partitions = partitionsOf(identity, partitioning, () => this.#metrics?.table.partitions ?? null)
    this.facts = { ...this.#readFacts(), partitioning, ...readLinkMaximum(place) }
  }

  readFast(tick: SourceTick): CardReadings {
    const files = this.#files
    const reader = this.#reader
    const total = this.#memoryTotalBytes
    const read = reader.sum('memoryUsedBytes', this.#memoryFiles(files.vramUsed, files.gttUsed))
    const used = read !== null && total !== null ? Math.min(read, total) : read
    const graphicsClockHertz = this.#clock('graphicsClockHertz', files.graphicsClock, files.graphicsLevels)
    return {
      ...this.#readMetrics(tick),
      utilizationRatio: reader.ratio('utilizationRatio', files.utilization, 100),
      memoryUtilizationRatio: reader.ratio('memoryUtilizationRatio', files.memoryUtilization, 100),
      memoryTotalBytes: total,
      memoryUsedBytes: used,
      memoryFreeBytes: used !== null && total !== null ? total - used : null,
      temperatureCelsius: reader.number('temperatureCelsius', files.temperature, 1000),
      junctionTemperatureCelsius: reader.number('junctionTemperatureCelsius', files.junctionTemperature, 1000),
      memoryTemperatureCelsius: this.#memoryTemperature(),
      powerWatts: reader.number('powerWatts', files.power, 1e6),
      fanRatio: reader.ratio('fanRatio', files.fan, files.fanMax),
      fanRpm: reader.number('fanRpm', files.fanSpeed, 1),
      graphicsClockHertz,
      smClockHertz: graphicsClockHertz,
      memoryClockHertz: this.#clock('memoryClockHertz', files.memoryClock, files.memoryLevels),
    }
  }

  readSlow(): CardReadings {
    const files = this.#files
    const reader = this.#reader
    let corrected: Reading = null
    let uncorrected: Reading = null
    for (const file of files.errorCounts) {
      const counts = parseErrorCounts(reader.text(file))
      if (counts.corrected !== null) corrected = (corrected ?? 0) + counts.corrected
      if (counts.uncorrected !== null) uncorrected = (uncorrected ?? 0) + counts.uncorrected
    }
    const powerLimitWatts = reader.number('powerLimitWatts', files.powerCap, 1e6)
    if (powerLimitWatts !== this.facts.powerLimitWatts) this.facts = { ...this.facts, powerLimitWatts }
    return {
      energyJoules: this.#metrics?.table.energyJoules ?? null,
      pcieGeneration: parsePcieGeneration(reader.text(files.linkSpeed)),
      pcieWidth: parsePcieWidth(reader.text(files.linkWidth)),
      pcieReplayCount: reader.number('pcieReplayCount', files.replayCount, 1),
      eccCorrectedVolatileCount: corrected,
      eccUncorrectedVolatileCount: uncorrected,
    }
  }

  close(): void {
    closeCardFiles(this.#files)
  }

  #readFacts(): CardFacts {
    const files = this.#files
    const { limits } = files
    const overdrive = this.#reader.text(files.overdrive)
    const maximum = (section: 'OD_SCLK' | 'OD_MCLK', levels: Attribute | null) =>
      parseOverdriveMax(overdrive, section) ?? parseClockLevels(this.#reader.text(levels)).maxHertz
    return {
      memoryTotalBytes: this.#memoryTotalBytes,
      powerLimitWatts: this.#reader.number('powerLimitWatts', files.powerCap, 1e6),
      powerLimitDefaultWatts: scaled(limits.powerCapDefault, 1e6),
      powerLimitMinWatts: scaled(limits.powerCapMin, 1e6),
      powerLimitMaxWatts: scaled(limits.powerCapMax, 1e6),
      smClockMaxHertz: maximum('OD_SCLK', files.graphicsLevels),
      memoryClockMaxHertz: maximum('OD_MCLK', files.memoryLevels),
      temperatureSlowdownCelsius: scaled(limits.temperatureCritical, 1000),
      temperatureShutdownCelsius: scaled(limits.temperatureEmergency, 1000),
      junctionTemperatureMaxCelsius: scaled(limits.junctionTemperatureCritical, 1000),
      memoryTemperatureMaxCelsius: scaled(limits.memoryTemperatureCritical, 1000),
    }
  }

  #readMetrics({ monotonicMs }: SourceTick): CardReadings {
    if (!this.#readsMetrics) return {}
    const bytes = this.#reader.bytes(this.#files.metrics)
    const table = bytes === null ? null : parseMetrics(bytes)
    const before = this.#metrics
    this.#metrics = table === null ? null : { table, atMs: monotonicMs }
    if (table === null) return {}
    const seconds = before === null ? 0 : (monotonicMs - before.atMs) / 1000
    const rate = (from: Reading | undefined, to: Reading) =>
      from === undefined || from === null || to === null || to < from || seconds <= 0 ? null : (to - from) / seconds
    const limit = this.facts.junctionTemperatureMaxCelsius ?? USUAL_JUNCTION_LIMIT_CELSIUS
    return {
      clockEventReasons:
        table.residency === null
          ? throttleReasons(table, this.#chip, limit)
          : before === null
            ? null
            : residencyReasons(before.table, table),
      xgmiTxBytesPerSecond: rate(before?.table.xgmiWrittenBytes, table.xgmiWrittenBytes),
      xgmiRxBytesPerSecond: rate(before?.table.xgmiReadBytes, table.xgmiReadBytes),
      ...xcdReadings(table.partitions),
    }
  }

  /** A card without such a sensor reports 0. */
  #memoryTemperature(): Reading {
    const celsius = this.#reader.number('memoryTemperatureCelsius', this.#files.memoryTemperature, 1000)
    if (celsius !== 0) return celsius
    this.#reader.note('memoryTemperatureCelsius', 'the memory sensor reports 0: there is none behind it')
    return null
  }

  /** From the sensor; from the list of levels where the card has no such sensor. */
  #clock(field: string, sensor: Attribute | null, levels: Attribute | null): Reading {
    return sensor === null ? parseClockLevels(this.#reader.text(levels)).currentHertz : this.#reader.number(field, sensor, 1)
  }

  /** VRAM; on an APU also the part of the host's memory that its graphics may take. */
  #memoryFiles(vram: Attribute | null, gtt: Attribute | null): Attribute[] {
    if (vram === null) return []
    return this.sharesMemory && gtt !== null ? [vram, gtt] : [vram]
  }
}

const NO_SENSOR = 'the driver shows no such sensor (hwmon) for this card'

function noteMissing(files: CardFiles, reader: CardReader): void {
  if (files.utilization === null) reader.note('utilizationRatio', 'the driver has no gpu_busy_percent for this card')
  if (files.memoryUtilization === null) reader.note('memoryUtilizationRatio', 'the driver has no mem_busy_percent for this card')
  if (files.temperature === null) reader.note('temperatureCelsius', NO_SENSOR)
  if (files.memoryTemperature === null) reader.note('memoryTemperatureCelsius', NO_SENSOR)
  if (files.power === null) reader.note('powerWatts', NO_SENSOR)
  if (files.powerCap === null) reader.note('powerLimitWatts', NO_SENSOR)
  if (files.fan === null) reader.note('fanRatio', NO_SENSOR)
}

function readLinkMaximum(place: CardPlace): CardFacts {
  return {
    pcieGenerationMax: parsePcieGeneration(tryReadSmallFile(join(place.devicePath, 'max_link_speed')) ?? ''),
    pcieWidthMax: parsePcieWidth(tryReadSmallFile(join(place.devicePath, 'max_link_width')) ?? ''),
  }
}

/** `CPX NPS4`: how compute and memory are divided; null on cards that cannot be. */
function readPartitioning(place: CardPlace): string | null {
  const modes = ['current_compute_partition', 'current_memory_partition'].map((name) =>
    parseName(tryReadSmallFile(join(place.devicePath, name)) ?? ''),
  )
  return modes.filter((mode) => mode !== null).join(' ') || null
}

function scaled(value: Reading, divisor: number): Reading {
  return value === null ? null : value / divisor
}
