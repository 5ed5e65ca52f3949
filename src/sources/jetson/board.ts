/** A Jetson by its files: which board it is, and where its GPU, its sensors and its power rails are. */
import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { tryReadSmallFile } from '../small-file.ts'

/** A power rail: volts and amperes, or watts where the monitor multiplies by itself. */
export interface Rail {
  readonly label: string
  readonly millivolts: string | null
  readonly milliamperes: string | null
  readonly microwatts: string | null
}

/** Paths of files; null where the board has none. */
export interface Board {
  readonly model: string | null
  readonly serial: string | null
  /** `tegra234` */
  readonly chip: string
  /** `36.4.3`: of Jetson Linux. */
  readonly release: string | null
  /** Its folder in /sys/class/devfreq; `17000000.gpu`. */
  readonly gpu: string
  readonly clock: string
  readonly clockMax: string
  /** In thousandths. */
  readonly load: string | null
  readonly temperature: string | null
  readonly temperatureCritical: string | null
  readonly temperatureSlowdown: string | null
  readonly fan: string | null
  readonly gpuRail: Rail | null
  /** All that the module takes. */
  readonly inputRail: Rail | null
}

/** What the driver of the large cards calls the GPU inside a Jetson. */
export const INTEGRATED = /\b(Thor|Orin|Tegra|Jetson)\b/

const CHIP = /nvidia,(tegra\d+)/
/** Orin's and its predecessors' by address, Thor's by domain; of Thor's two the first one computes. */
const GPU_NAME = /(^|[.-])(gpu|gp10b|gv11b|ga10b|gpc)([.-]|$)/
const POWER_MONITORS = /^ina\d+/
/** `VDD_GPU_SOC`, `VDD_CPU_GPU_CV`, `POM_5V_GPU`, `GPU` */
const GPU_RAIL = /(^|_)GPU(_|$)/
const INPUT_RAIL = /^(VDD_IN|VIN|POM_5V_IN)$/

/** null: no Jetson, or one whose GPU the kernel does not show. */
export function findBoard(root: string): Board | null {
  const tree = join(root, 'proc/device-tree')
  const chip = CHIP.exec(words(join(tree, 'compatible')) ?? '')?.[1]
  const gpu = chip === undefined ? undefined : findGpu(root)
  if (chip === undefined || gpu === undefined) return null
  const folder = join(root, 'sys/class/devfreq', gpu)
  const zone = findZone(root)
  const rails = findRails(root)
  return {
    model: words(join(tree, 'model')),
    serial: words(join(tree, 'serial-number')),
    chip,
    release: releaseOf(tryReadSmallFile(join(root, 'etc/nv_tegra_release')) ?? ''),
    gpu,
    clock: join(folder, 'cur_freq'),
    clockMax: join(folder, 'max_freq'),
    load:
      present(join(folder, 'device/load')) ??
      present(join(root, 'sys/devices/gpu.0/load')) ??
      present(join(root, 'sys/devices/platform/gpu.0/load')),
    temperature: zone === null ? null : present(join(zone, 'temp')),
    temperatureCritical: zone === null ? null : tripOf(zone, 'critical'),
    temperatureSlowdown: zone === null ? null : (tripOf(zone, 'hot') ?? tripOf(zone, 'passive')),
    fan: findFan(root),
    gpuRail: rails.find(({ label }) => GPU_RAIL.test(label)) ?? null,
    inputRail: rails.find(({ label }) => INPUT_RAIL.test(label)) ?? null,
  }
}

/** `# R36 (release), REVISION: 4.3, …` → `36.4.3` */
export function releaseOf(text: string): string | null {
  const [, major, revision] = /^#\s*R(\d+)\b.*?REVISION:\s*([\d.]+)/m.exec(text) ?? []
  return major === undefined || revision === undefined ? null : `${major}.${revision}`
}

function findGpu(root: string): string | undefined {
  const folder = join(root, 'sys/class/devfreq')
  return namesIn(folder).find((name) => GPU_NAME.test(name) && existsSync(join(folder, name, 'cur_freq')))
}

/** Called `gpu-thermal`, on older boards `GPU-therm`. */
function findZone(root: string): string | null {
  const folder = join(root, 'sys/class/thermal')
  const name = namesIn(folder).find((one) => /^gpu[-_]?therm/i.test(words(join(folder, one, 'type')) ?? ''))
  return name === undefined ? null : join(folder, name)
}

function tripOf(zone: string, type: string): string | null {
  const trip = namesIn(zone).find((name) => /^trip_point_\d+_type$/.test(name) && words(join(zone, name)) === type)
  return trip === undefined ? null : present(join(zone, trip.replace('_type', '_temp')))
}

function findFan(root: string): string | null {
  const folder = join(root, 'sys/class/hwmon')
  const name = namesIn(folder).find((one) => /fan/.test(words(join(folder, one, 'name')) ?? '') && existsSync(join(folder, one, 'pwm1')))
  return name === undefined ? null : join(folder, name, 'pwm1')
}

function findRails(root: string): readonly Rail[] {
  const folder = join(root, 'sys/class/hwmon')
  return namesIn(folder)
    .filter((name) => POWER_MONITORS.test(words(join(folder, name, 'name')) ?? ''))
    .flatMap((name) => railsOf(join(folder, name)))
}

function railsOf(monitor: string): Rail[] {
  return namesIn(monitor).flatMap((file) => {
    const number = /^in(\d+)_label$/.exec(file)?.[1]
    const label = number === undefined ? null : words(join(monitor, file))
    if (number === undefined || label === null) return []
    return {
      label,
      millivolts: present(join(monitor, `in${number}_input`)),
      milliamperes: present(join(monitor, `curr${number}_input`)),
      microwatts: present(join(monitor, `power${number}_input`)),
    }
  })
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
  } catch {
    // No such folder: nothing of this kind on this board.
    return []
  }
}

/** By its real place, so that it can be kept open. */
function present(path: string): string | null {
  return existsSync(path) ? realpathSync(path) : null
}

/** Device tree texts end with, and lists are divided by, a NUL. */
function words(path: string): string | null {
  const text = tryReadSmallFile(path)?.replaceAll('\0', ' ').trim()
  return text === undefined || text === '' ? null : text
}
