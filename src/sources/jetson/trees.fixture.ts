/** Files of real layouts, as the kernels of Jetson Linux show them: a board is a tree of texts. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export type Tree = Readonly<Record<string, string>>

const MEMINFO = 'MemTotal:       64325272 kB\nMemFree:        40000000 kB\nMemAvailable:   44325272 kB\n'

/** JetPack 6 on an AGX Orin. */
export const AGX_ORIN: Tree = {
  'proc/device-tree/model': 'NVIDIA Jetson AGX Orin Developer Kit\0',
  'proc/device-tree/serial-number': '1420921055981\0',
  'proc/device-tree/compatible': 'nvidia,p3737-0000+p3701-0000\0nvidia,p3701-0000\0nvidia,tegra234\0',
  'proc/meminfo': MEMINFO,
  'etc/nv_tegra_release':
    '# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64, DATE: Wed Jan  8 01:49:37 UTC 2025\n',
  'sys/class/devfreq/15340000.vic/cur_freq': '115200000\n',
  'sys/class/devfreq/17000000.gpu/cur_freq': '816000000\n',
  'sys/class/devfreq/17000000.gpu/max_freq': '1300500000\n',
  'sys/class/devfreq/17000000.gpu/device/load': '735\n',
  'sys/class/thermal/thermal_zone0/type': 'cpu-thermal\n',
  'sys/class/thermal/thermal_zone0/temp': '52968\n',
  'sys/class/thermal/thermal_zone1/type': 'gpu-thermal\n',
  'sys/class/thermal/thermal_zone1/temp': '47625\n',
  'sys/class/thermal/thermal_zone1/trip_point_0_type': 'critical\n',
  'sys/class/thermal/thermal_zone1/trip_point_0_temp': '104500\n',
  'sys/class/thermal/thermal_zone1/trip_point_1_type': 'passive\n',
  'sys/class/thermal/thermal_zone1/trip_point_1_temp': '99000\n',
  'sys/class/hwmon/hwmon0/name': 'pwmfan\n',
  'sys/class/hwmon/hwmon0/pwm1': '51\n',
  'sys/class/hwmon/hwmon1/name': 'ina3221\n',
  'sys/class/hwmon/hwmon1/in1_label': 'VDD_GPU_SOC\n',
  'sys/class/hwmon/hwmon1/in1_input': '18992\n',
  'sys/class/hwmon/hwmon1/curr1_input': '272\n',
  'sys/class/hwmon/hwmon1/in2_label': 'VDD_CPU_CV\n',
  'sys/class/hwmon/hwmon1/in2_input': '18992\n',
  'sys/class/hwmon/hwmon1/curr2_input': '96\n',
  'sys/class/hwmon/hwmon1/in7_label': 'sum of shunt voltages\n',
}

/** JetPack 6 on an Orin Nano: the whole module has a rail, and the GPU shares one with the CPU. */
export const ORIN_NANO: Tree = {
  ...AGX_ORIN,
  'proc/device-tree/model': 'NVIDIA Jetson Orin Nano Developer Kit\0',
  'proc/meminfo': 'MemTotal:        7802140 kB\nMemFree:         1000000 kB\nMemAvailable:    4802140 kB\n',
  'sys/class/hwmon/hwmon1/in1_label': 'VDD_IN\n',
  'sys/class/hwmon/hwmon1/in1_input': '5008\n',
  'sys/class/hwmon/hwmon1/curr1_input': '1040\n',
  'sys/class/hwmon/hwmon1/in2_label': 'VDD_CPU_GPU_CV\n',
  'sys/class/hwmon/hwmon1/in2_input': '5008\n',
  'sys/class/hwmon/hwmon1/curr2_input': '208\n',
}

/** JetPack 7 on a Thor: clocks by domain, no load, a monitor that gives the power of the input. */
export const AGX_THOR: Tree = {
  'proc/device-tree/model': 'NVIDIA Jetson AGX Thor Developer Kit\0',
  'proc/device-tree/compatible': 'nvidia,p3971-0089+p3834-0008\0nvidia,tegra264\0',
  'proc/meminfo': 'MemTotal:       128811428 kB\nMemFree:        90000000 kB\nMemAvailable:   118811428 kB\n',
  'etc/nv_tegra_release': '# R38 (release), REVISION: 2.0, GCID: 41844464, BOARD: generic\n',
  'sys/class/devfreq/bwmgr/cur_freq': '4266000000\n',
  'sys/class/devfreq/gpu-gpc-0/cur_freq': '1575000000\n',
  'sys/class/devfreq/gpu-gpc-0/max_freq': '1575000000\n',
  'sys/class/devfreq/gpu-nvd-0/cur_freq': '1692000000\n',
  'sys/class/thermal/thermal_zone1/type': 'gpu-thermal\n',
  'sys/class/thermal/thermal_zone1/temp': '41250\n',
  'sys/class/hwmon/hwmon2/name': 'ina3221\n',
  'sys/class/hwmon/hwmon2/in1_label': 'VDD_GPU\n',
  'sys/class/hwmon/hwmon2/in1_input': '12016\n',
  'sys/class/hwmon/hwmon2/curr1_input': '460\n',
  'sys/class/hwmon/hwmon3/name': 'ina238\n',
  'sys/class/hwmon/hwmon3/in1_label': 'VIN\n',
  'sys/class/hwmon/hwmon3/power1_input': '38500000\n',
}

export function plant(tree: Tree): { readonly root: string; write(path: string, text: string): void } {
  const root = mkdtempSync(join(tmpdir(), 'gpuwarden-jetson-'))
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  for (const [path, text] of Object.entries(tree)) write(path, text)
  return { root, write }
}
