import type { GpuReadings, Reading } from '../../core/model.ts'
import type { CardFiles } from './card-files.ts'
import { type AwakeFacts, readLinkMaximum } from './card-info.ts'
import type { CardReader } from './card-reader.ts'
import type { CardPlace } from './discover.ts'
import type { Attribute } from './files.ts'
import { parseClockLevels, parseErrorCounts, parsePcieGeneration, parsePcieWidth } from './parse.ts'
import { isApuTable, parseClockEventReasons, parseMetricsHeader } from './throttle.ts'

/** Expensive to read, or slow to change. */
export type SlowReadings = Pick<
  GpuReadings,
  'pcieGeneration' | 'pcieWidth' | 'pcieReplayCount' | 'eccCorrectedVolatileCount' | 'eccUncorrectedVolatileCount'
>

/** VRAM; on an APU also the part of the host's memory that its graphics may take. */
function memoryFiles(apu: boolean, vram: Attribute | null, gtt: Attribute | null): Attribute[] {
  if (vram === null) return []
  return apu && gtt !== null ? [vram, gtt] : [vram]
}

export function readFacts(place: CardPlace, files: CardFiles, reader: CardReader, apuModel: boolean): AwakeFacts {
  const table = reader.bytes(files.metrics)
  const header = table === null ? null : parseMetricsHeader(table)
  const apu = apuModel || (header !== null && isApuTable(header))
  const throttling = table === null ? null : parseClockEventReasons(table)
  noteMissing(files, reader)
  if (throttling === null)
    reader.note(
      'clockEventReasons',
      header === null ? 'the driver has no gpu_metrics for this card' : unknownTable(header.format, header.content),
    )
  return {
    limits: files.limits,
    apu,
    memoryTotalBytes: reader.sum('memoryTotalBytes', memoryFiles(apu, files.vramTotal, files.gttTotal)),
    powerLimitWatts: reader.number('powerLimitWatts', files.powerCap, 1e6),
    graphicsClockMaxHertz: parseClockLevels(reader.text(files.graphicsLevels)).maxHertz,
    memoryClockMaxHertz: parseClockLevels(reader.text(files.memoryLevels)).maxHertz,
    tellsThrottling: throttling !== null,
    ...readLinkMaximum(place),
  }
}

function unknownTable(format: number, content: number): string {
  return `gpu_metrics ${format}.${content} has throttling bits that differ between chips`
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

export function readFast(files: CardFiles, reader: CardReader, facts: AwakeFacts) {
  const total = facts.memoryTotalBytes
  const read = reader.sum('memoryUsedBytes', memoryFiles(facts.apu, files.vramUsed, files.gttUsed))
  const used = read !== null && total !== null ? Math.min(read, total) : read
  const graphicsClock = reader.clock('graphicsClockHertz', files.graphicsClock, files.graphicsLevels)
  const table = facts.tellsThrottling ? reader.bytes(files.metrics) : null
  return {
    clockEventReasons: table === null ? null : parseClockEventReasons(table),
    utilizationRatio: reader.ratio('utilizationRatio', files.utilization, 100),
    memoryUtilizationRatio: reader.ratio('memoryUtilizationRatio', files.memoryUtilization, 100),
    memoryTotalBytes: total,
    memoryUsedBytes: used,
    memoryFreeBytes: used !== null && total !== null ? total - used : null,
    temperatureCelsius: reader.number('temperatureCelsius', files.temperature, 1000),
    memoryTemperatureCelsius: reader.number('memoryTemperatureCelsius', files.memoryTemperature, 1000),
    powerWatts: reader.number('powerWatts', files.power, 1e6),
    fanRatio: reader.ratio('fanRatio', files.fan, files.fanMax),
    graphicsClockHertz: graphicsClock,
    smClockHertz: graphicsClock,
    memoryClockHertz: reader.clock('memoryClockHertz', files.memoryClock, files.memoryLevels),
  }
}

export function readSlow(files: CardFiles, reader: CardReader): SlowReadings {
  let corrected: Reading = null
  let uncorrected: Reading = null
  for (const file of files.errorCounts) {
    const counts = parseErrorCounts(reader.text(file))
    if (counts.corrected !== null) corrected = (corrected ?? 0) + counts.corrected
    if (counts.uncorrected !== null) uncorrected = (uncorrected ?? 0) + counts.uncorrected
  }
  return {
    pcieGeneration: parsePcieGeneration(reader.text(files.linkSpeed)),
    pcieWidth: parsePcieWidth(reader.text(files.linkWidth)),
    pcieReplayCount: reader.number('pcieReplayCount', files.replayCount, 1),
    eccCorrectedVolatileCount: corrected,
    eccUncorrectedVolatileCount: uncorrected,
  }
}
