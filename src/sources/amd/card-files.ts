/** Which files an awake card has, found once. `pcie_bw` is never among them: the kernel sleeps a second in it. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { tryList } from '../../core/system-file.ts'
import { Attribute, attribute } from '../drm/attribute.ts'
import { parseInteger } from '../drm/parse.ts'
import { tryReadSmallFile } from '../small-file.ts'

export interface CardFiles {
  readonly utilization: Attribute | null
  readonly memoryUtilization: Attribute | null
  readonly vramTotal: Attribute | null
  readonly vramUsed: Attribute | null
  readonly gttTotal: Attribute | null
  readonly gttUsed: Attribute | null
  /** Of the edge; on cards without such a sensor, of the junction. */
  readonly temperature: Attribute | null
  readonly junctionTemperature: Attribute | null
  readonly memoryTemperature: Attribute | null
  readonly power: Attribute | null
  readonly powerCap: Attribute | null
  /** Duty of the fan, or its speed where there is no duty; `fanMax` is full speed. */
  readonly fan: Attribute | null
  readonly fanMax: number
  readonly fanSpeed: Attribute | null
  readonly graphicsClock: Attribute | null
  readonly memoryClock: Attribute | null
  readonly graphicsLevels: Attribute | null
  readonly memoryLevels: Attribute | null
  readonly overdrive: Attribute | null
  readonly metrics: Attribute | null
  readonly linkSpeed: Attribute | null
  readonly linkWidth: Attribute | null
  readonly replayCount: Attribute | null
  readonly errorCounts: readonly Attribute[]
  readonly limits: CardLimits
}

/** Thresholds that the driver answers without asking the card, in sysfs units. */
export interface CardLimits {
  readonly temperatureCritical: number | null
  readonly temperatureEmergency: number | null
  readonly junctionTemperatureCritical: number | null
  readonly memoryTemperatureCritical: number | null
  readonly powerCapDefault: number | null
  readonly powerCapMin: number | null
  readonly powerCapMax: number | null
}

export function findCardFiles(devicePath: string): CardFiles {
  const device = (name: string) => attribute(join(devicePath, name))
  const folder = join(devicePath, 'hwmon')
  const hwmonName = (tryList(folder) ?? []).filter((name) => /^hwmon\d+$/.test(name)).sort()[0]
  const hwmon = hwmonName === undefined ? null : join(folder, hwmonName)
  const sensor = (name: string) => (hwmon === null ? null : attribute(join(hwmon, name)))
  const number = (name: string) => (hwmon === null ? null : parseInteger(tryReadSmallFile(join(hwmon, name)) ?? ''))

  const edge = hwmon && findChannel(hwmon, 'temp', ['edge', 'junction', 'mem'], 'edge')
  const junction = hwmon && findChannel(hwmon, 'temp', ['edge', 'junction', 'mem'], 'junction')
  const memory = hwmon && findChannel(hwmon, 'temp', ['edge', 'junction', 'mem'], 'mem')
  const graphicsClock = hwmon && findChannel(hwmon, 'freq', ['sclk', 'mclk'], 'sclk')
  const memoryClock = hwmon && findChannel(hwmon, 'freq', ['sclk', 'mclk'], 'mclk')
  const core = edge ?? junction
  const channel = (name: string | null) => (name === null ? null : sensor(`${name}_input`))
  const ras = (tryList(join(devicePath, 'ras')) ?? []).filter((name) => name.endsWith('_err_count')).sort()

  return {
    utilization: device('gpu_busy_percent'),
    memoryUtilization: device('mem_busy_percent'),
    vramTotal: device('mem_info_vram_total'),
    vramUsed: device('mem_info_vram_used'),
    gttTotal: device('mem_info_gtt_total'),
    gttUsed: device('mem_info_gtt_used'),
    temperature: channel(core),
    junctionTemperature: channel(junction),
    memoryTemperature: channel(memory),
    power: sensor('power1_average') ?? sensor('power1_input'),
    powerCap: sensor('power1_cap'),
    ...fanFile(sensor, number),
    fanSpeed: sensor('fan1_input'),
    graphicsClock: channel(graphicsClock),
    memoryClock: channel(memoryClock),
    graphicsLevels: device('pp_dpm_sclk'),
    memoryLevels: device('pp_dpm_mclk'),
    overdrive: device('pp_od_clk_voltage'),
    metrics: device('gpu_metrics'),
    linkSpeed: device('current_link_speed'),
    linkWidth: device('current_link_width'),
    replayCount: device('pcie_replay_count'),
    errorCounts: ras.map((name) => new Attribute(join(devicePath, 'ras', name))),
    limits: {
      temperatureCritical: core === null ? null : number(`${core}_crit`),
      temperatureEmergency: core === null ? null : number(`${core}_emergency`),
      junctionTemperatureCritical: junction === null ? null : number(`${junction}_crit`),
      memoryTemperatureCritical: memory === null ? null : number(`${memory}_crit`),
      powerCapDefault: number('power1_cap_default'),
      powerCapMin: number('power1_cap_min'),
      powerCapMax: number('power1_cap_max'),
    },
  }
}

export function closeCardFiles(files: CardFiles): void {
  for (const value of Object.values(files).flat()) if (value instanceof Attribute) value.close()
}

function fanFile(sensor: (name: string) => Attribute | null, number: (name: string) => number | null): Pick<CardFiles, 'fan' | 'fanMax'> {
  const pwm = sensor('pwm1')
  if (pwm !== null) return { fan: pwm, fanMax: number('pwm1_max') || 255 }
  const rpmMax = number('fan1_max')
  return rpmMax ? { fan: sensor('fan1_input'), fanMax: rpmMax } : { fan: null, fanMax: 1 }
}

/** `temp2` for `junction`: by its label, or by position where the driver wrote no labels. */
function findChannel(hwmon: string, kind: string, order: readonly string[], wanted: string): string | null {
  for (let number = 1; number <= order.length; number++) {
    const name = `${kind}${number}`
    if (!existsSync(join(hwmon, `${name}_input`))) continue
    const label = tryReadSmallFile(join(hwmon, `${name}_label`))?.trim() ?? order[number - 1]
    if (label === wanted) return name
  }
  return null
}
