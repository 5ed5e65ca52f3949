/** Machines with AMD cards, as amdgpu shows them: layouts and usual values of real cards. */
import type { MachineTree, Tree } from '../drm/tree.fixture.ts'
import { metricsTable } from './metrics-table.fixture.ts'

const GIBIBYTE = 1024 ** 3

interface Sensor {
  readonly celsius: number
  readonly critical: number
}

function hwmon(folder: string, edge: Sensor | null, junction: Sensor, memory: Sensor, rest: Tree): Tree {
  const files: Record<string, string | number> = { name: 'amdgpu' }
  for (const [index, [label, sensor]] of [['edge', edge] as const, ['junction', junction] as const, ['mem', memory] as const].entries()) {
    if (sensor === null) continue
    files[`temp${index + 1}_label`] = label
    files[`temp${index + 1}_input`] = sensor.celsius * 1000
    files[`temp${index + 1}_crit`] = sensor.critical * 1000
    files[`temp${index + 1}_emergency`] = (sensor.critical + 5) * 1000
  }
  return Object.fromEntries(Object.entries({ ...files, ...rest }).map(([name, value]) => [`hwmon/${folder}/${name}`, value]))
}

/** RX 7900 XTX with overdrive, at work: near its power limit, its hottest spot far from throttling, as the firmware claims it is. */
export const RX_7900_XTX: MachineTree = {
  cards: [
    {
      minor: 1,
      address: '0000:03:00.0',
      device: {
        vendor: '0x1002',
        device: '0x744c',
        revision: '0xc8',
        unique_id: '5f3ac1d09e774b22',
        vbios_version: '113-D70401XT-N11',
        gpu_busy_percent: 97,
        mem_busy_percent: 38,
        mem_info_vram_total: 25_753_026_560,
        mem_info_vram_used: 9 * GIBIBYTE,
        mem_info_gtt_total: 33_000_000_000,
        mem_info_gtt_used: 100_000_000,
        pp_dpm_sclk: '0: 500Mhz \n1: 2650Mhz *\n2: 2219Mhz ',
        pp_dpm_mclk: '0: 96Mhz \n1: 456Mhz \n2: 772Mhz \n3: 1249Mhz *',
        pp_od_clk_voltage:
          'OD_SCLK:\n0: 500Mhz\n1: 2735Mhz\nOD_MCLK:\n0: 97Mhz\n1: 1250MHz\nOD_VDDGFX_OFFSET:\n0mV\nOD_RANGE:\nSCLK:     500Mhz       5000Mhz\nMCLK:      97Mhz       1500Mhz\nVDDGFX_OFFSET:    -450mv          0mv',
        current_link_speed: '16.0 GT/s PCIe',
        current_link_width: 16,
        max_link_speed: '16.0 GT/s PCIe',
        max_link_width: 16,
        pcie_replay_count: 0,
        'ip_discovery/die/0/GC/0/major': 11,
        'ip_discovery/die/0/GC/0/minor': 0,
        'ip_discovery/die/0/GC/0/revision': 0,
        gpu_metrics: metricsTable('1.3', { 4: 62, 6: 78, 8: 84, 68: (1 << 1) | (1 << 16), 112: (1n << 36n) | 1n }),
        ...hwmon(
          'hwmon2',
          { celsius: 62, critical: 100 },
          { celsius: 78, critical: 110 },
          { celsius: 84, critical: 108 },
          {
            power1_average: 351_000_000,
            power1_cap: 355_000_000,
            power1_cap_default: 355_000_000,
            power1_cap_min: 319_000_000,
            power1_cap_max: 408_000_000,
            pwm1: 102,
            pwm1_max: 255,
            fan1_input: 1500,
            freq1_label: 'sclk',
            freq1_input: 2_650_000_000,
            freq2_label: 'mclk',
            freq2_input: 1_249_000_000,
          },
        ),
      },
    },
  ],
}

const PARTITIONS = 8
const LOCATION = 0x0500

function kfdNodes(): Tree {
  const files: Record<string, string | number> = {
    'sys/class/kfd/kfd/topology/nodes/0/gpu_id': 0,
    'sys/class/kfd/kfd/topology/nodes/0/properties': 'cpu_cores_count 96\nsimd_count 0',
  }
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const node = `sys/class/kfd/kfd/topology/nodes/${partition + 1}`
    files[`${node}/gpu_id`] = 51_100 + partition
    const location = partition * 2 ** 28 + LOCATION
    files[`${node}/properties`] = `simd_count 152\nlocation_id ${location}\ndomain 0\nnum_xcc 1\ngfx_target_version 90402`
    files[`${node}/mem_banks/0/properties`] = `heap_type 1\nsize_in_bytes ${24 * GIBIBYTE}\nwidth 8192`
  }
  return files
}

/** What the dies of an MI300X do, one in each partition. */
function dies(busy: readonly number[]): Record<number, number | bigint> {
  const fields: Record<number, number | bigint> = { 306: busy.length }
  for (const [partition, percent] of busy.entries()) {
    fields[312 + partition * 168] = percent
    for (let die = 1; die < 8; die++) fields[312 + partition * 168 + die * 4] = 0xffffffff
  }
  return fields
}

export const MI300X_METRICS = (counted: Readonly<Record<number, number | bigint>> = {}): Buffer =>
  metricsTable('1.6', {
    4: 58,
    6: 49,
    10: 612,
    16: 65_536n * 123_456n,
    32: 1000,
    128: 1_000_000n,
    192: 2_000_000n,
    ...dies([100, 100, 96, 97, 0, 0, 0, 12]),
    ...counted,
  })

/** MI300X in eight partitions (CPX), memory in four (NPS4); one process on the first partition, two on the second. */
export const MI300X_CPX: MachineTree = {
  cards: [
    {
      minor: 0,
      address: '0000:05:00.0',
      device: {
        vendor: '0x1002',
        device: '0x74a1',
        revision: '0x00',
        unique_id: '9a7d5c3b1f2e4d60',
        product_name: 'AMD Instinct MI300X OAM',
        serial_number: '692251001124',
        current_compute_partition: 'CPX',
        current_memory_partition: 'NPS4',
        available_compute_partition: 'SPX, DPX, QPX, CPX',
        gpu_busy_percent: 51,
        mem_busy_percent: 22,
        mem_info_vram_total: 192 * GIBIBYTE,
        mem_info_vram_used: 41 * GIBIBYTE,
        current_link_speed: '32.0 GT/s PCIe',
        current_link_width: 16,
        max_link_speed: '32.0 GT/s PCIe',
        max_link_width: 16,
        pp_dpm_sclk: '0: 132Mhz *\n1: 2100Mhz ',
        pp_dpm_mclk: '0: 900Mhz \n1: 1300Mhz *',
        'ras/umc_err_count': 'ue: 0\nce: 0',
        gpu_metrics: MI300X_METRICS(),
        ...hwmon(
          'hwmon7',
          null,
          { celsius: 58, critical: 100 },
          { celsius: 49, critical: 105 },
          { power1_input: 612_000_000, power1_cap: 750_000_000, power1_cap_max: 750_000_000, power1_cap_min: 0 },
        ),
      },
    },
  ],
  other: {
    ...kfdNodes(),
    'sys/class/kfd/kfd/proc/2001/vram_51100': 20 * GIBIBYTE,
    'sys/class/kfd/kfd/proc/2001/vram_51101': 0,
    'sys/class/kfd/kfd/proc/2002/vram_51101': 12 * GIBIBYTE,
    'sys/class/kfd/kfd/proc/2003/vram_51101': 8 * GIBIBYTE,
  },
}
