/** Which files an awake card has beside those of its clocks, found once. */
import { realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Reading } from '../../core/model.ts'
import { errorCode, tryList } from '../../core/system-file.ts'
import { Attribute, attribute } from '../drm/attribute.ts'
import type { CardPlace } from '../drm/discover.ts'
import { parseInteger } from '../drm/parse.ts'
import { tryReadSmallFile } from '../small-file.ts'
import { numbered } from './gt-files.ts'

export interface CardFiles {
  readonly temperature: Attribute | null
  readonly memoryTemperature: Attribute | null
  /** µW; most cards count only energy (µJ). */
  readonly power: Attribute | null
  readonly energy: Attribute | null
  readonly powerLimit: Attribute | null
  readonly fan: Attribute | null
  readonly fanMax: Reading
  /** Bytes of the card's own memory, in the form of i915. */
  readonly memoryAvailable: Attribute | null
  /** The same for each tile of xe, with `size:` and `usage:`; only root may read them. */
  readonly memoryManagers: readonly Attribute[]
  readonly limits: CardLimits
}

/** In the units of the model. */
export interface CardLimits {
  readonly memoryTotalBytes: Reading
  readonly temperatureMax: Reading
  readonly temperatureCritical: Reading
  readonly temperatureEmergency: Reading
  readonly memoryTemperatureCritical: Reading
  readonly powerRatedWatts: Reading
}

export function findCardFiles(root: string, place: CardPlace): CardFiles {
  const hwmon = findHwmon(place.devicePath)
  const sensor = (name: string | null) => (hwmon === null || name === null ? null : attribute(join(hwmon, name)))
  const number = (name: string | null, divisor: number): Reading => {
    const value = hwmon === null || name === null ? null : parseInteger(tryReadSmallFile(join(hwmon, name)) ?? '')
    return value === null || value <= 0 ? null : value / divisor
  }
  const core = hwmon && findChannel(hwmon, 'temp', ['pkg'])
  const memory = hwmon && findChannel(hwmon, 'temp', ['vram'])
  const energy = hwmon && findChannel(hwmon, 'energy', ['card', 'pkg'])
  return {
    temperature: sensor(core && `${core}_input`),
    memoryTemperature: sensor(memory && `${memory}_input`),
    power: sensor('power1_input') ?? sensor('power1_average'),
    energy: sensor(energy && `${energy}_input`),
    powerLimit: sensor('power1_max') ?? sensor('power2_max') ?? sensor('power1_cap'),
    fan: sensor('fan1_input'),
    fanMax: number('fan1_max', 1),
    memoryAvailable: attribute(join(place.cardPath, 'lmem_avail_bytes')),
    memoryManagers: findMemoryManagers(root, place),
    limits: {
      memoryTotalBytes: readMemoryTotal(place),
      temperatureMax: number(core && `${core}_max`, 1000),
      temperatureCritical: number(core && `${core}_crit`, 1000),
      temperatureEmergency: number(core && `${core}_emergency`, 1000),
      memoryTemperatureCritical: number(memory && `${memory}_crit`, 1000),
      powerRatedWatts: number('power1_rated_max', 1e6) ?? number('power2_rated_max', 1e6),
    },
  }
}

export function closeCardFiles(files: CardFiles): void {
  for (const value of Object.values(files).flat()) if (value instanceof Attribute) value.close()
}

/** Where the link to the host is reported: the graphics of Arc is behind a bridge on its card, and reports the slowest link there is itself. */
export function bridgeFolder(place: CardPlace): string {
  try {
    return dirname(dirname(realpathSync(place.devicePath)))
  } catch (error) {
    errorCode(error)
    return place.devicePath
  }
}

/** The driver's own; a card with several tiles has one more for each. */
function findHwmon(devicePath: string): string | null {
  const folders = numbered(join(devicePath, 'hwmon'), 'hwmon')
  const named = folders.find((folder) => /^(?:xe|i915)$/.test((tryReadSmallFile(join(folder, 'name')) ?? '').trim()))
  return named ?? folders[0] ?? null
}

/** `energy2` for `pkg`: the first label that there is, or the first channel where the driver wrote no labels. */
function findChannel(hwmon: string, kind: string, labels: readonly string[]): string | null {
  const channels = (tryList(hwmon) ?? []).flatMap((name) => new RegExp(`^(${kind}\\d+)_input$`).exec(name)?.[1] ?? [])
  const byLabel = new Map(channels.map((channel) => [tryReadSmallFile(join(hwmon, `${channel}_label`))?.trim(), channel]))
  for (const label of labels) {
    const found = byLabel.get(label)
    if (found !== undefined) return found
  }
  return labels.includes('pkg') ? (byLabel.get(undefined) ?? null) : null
}

/** What the kernel tells everyone: i915 of the card, xe of each tile. */
function readMemoryTotal({ cardPath, devicePath }: CardPlace): Reading {
  const bytes = (path: string) => parseInteger(tryReadSmallFile(path) ?? '')
  const whole = bytes(join(cardPath, 'lmem_total_bytes'))
  if (whole !== null) return whole > 0 ? whole : null
  let sum: Reading = null
  for (const tile of numbered(devicePath, 'tile')) {
    const size = bytes(join(tile, 'physical_vram_size_bytes')) ?? bytes(join(tile, 'memory/physical_vram_size_bytes'))
    if (size !== null) sum = (sum ?? 0) + size
  }
  return sum
}

function findMemoryManagers(root: string, { address, minor }: CardPlace): readonly Attribute[] {
  for (const name of [address, String(minor)]) {
    if (name === null) continue
    const folder = join(root, 'sys/kernel/debug/dri', name)
    const files = (tryList(folder) ?? []).filter((file) => /^vram\d+_mm$/.test(file)).sort()
    if (files.length > 0) return files.map((file) => new Attribute(join(folder, file)))
  }
  return []
}
