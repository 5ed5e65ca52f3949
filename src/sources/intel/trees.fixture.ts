/** Machines with Intel graphics, as xe and i915 show them: layouts of the kernel's documentation, usual values of real cards. */
import type { MachineTree, Tree } from '../drm/tree.fixture.ts'

const GIBIBYTE = 1024 ** 3

function below(folder: string, tree: Tree): Tree {
  return Object.fromEntries(Object.entries(tree).map(([name, value]) => [`${folder}/${name}`, value]))
}

const XE_REASONS = ['pl1', 'pl2', 'pl4', 'thermal', 'prochot', 'ratl', 'vr_thermalert', 'vr_tdc']

function xeGt(folder: string, name: string, clocks: { act: number; rp0: number }, active: readonly string[], idleMs: number): Tree {
  const reasons = Object.fromEntries(XE_REASONS.map((reason) => [`freq0/throttle/reason_${reason}`, active.includes(reason) ? 1 : 0]))
  return below(folder, {
    'freq0/act_freq': clocks.act,
    'freq0/cur_freq': clocks.act,
    'freq0/min_freq': 400,
    'freq0/max_freq': clocks.rp0,
    'freq0/rp0_freq': clocks.rp0,
    'freq0/rpe_freq': 400,
    'freq0/rpn_freq': 400,
    'freq0/throttle/status': active.length > 0 ? 1 : 0,
    ...reasons,
    'gtidle/name': name,
    'gtidle/idle_status': 'gt-c0',
    'gtidle/idle_residency_ms': idleMs,
  })
}

/** What xe says of an open file: cycles of the render, compute and video engines out of `total`. */
export function xeClient(
  id: number,
  address: string,
  cycles: { rcs: number; ccs: number; vcs: number; total: number },
  vram: string,
): string {
  const engine = (name: string, busy: number, capacity: number) =>
    `drm-cycles-${name}:\t${busy}\ndrm-total-cycles-${name}:\t${cycles.total}\ndrm-engine-capacity-${name}:\t${capacity}\n`
  return `pos:\t0\ndrm-driver:\txe\ndrm-client-id:\t${id}\ndrm-pdev:\t${address}\ndrm-total-system:\t0\ndrm-resident-gtt:\t16 MiB\ndrm-total-vram0:\t${vram}\ndrm-resident-vram0:\t${vram}\n${engine('rcs', cycles.rcs, 1)}${engine('ccs', cycles.ccs, 1)}${engine('vcs', cycles.vcs, 2)}`
}

/** Arc B580 with xe on kernel 6.17: everything that hwmon has there, at work, held by its power limit. */
export const ARC_B580: MachineTree = {
  cards: [
    {
      minor: 1,
      address: '0000:03:00.0',
      device: {
        vendor: '0x8086',
        device: '0xe20b',
        uevent: 'DRIVER=xe\nPCI_SLOT_NAME=0000:03:00.0',
        current_link_speed: '2.5 GT/s PCIe',
        current_link_width: 1,
        max_link_speed: '2.5 GT/s PCIe',
        max_link_width: 1,
        'tile0/physical_vram_size_bytes': 12 * GIBIBYTE,
        ...xeGt('tile0/gt0', 'gt0-rc', { act: 2700, rp0: 2850 }, ['pl1'], 500_000),
        ...xeGt('tile0/gt1', 'gt1-mc', { act: 0, rp0: 1500 }, [], 900_000),
        ...below('hwmon/hwmon4', {
          name: 'xe',
          energy1_label: 'card',
          energy1_input: 5_000_000_000,
          energy2_label: 'pkg',
          energy2_input: 4_000_000_000,
          power1_label: 'card',
          power1_max: 190_000_000,
          power1_cap: 380_000_000,
          power1_crit: 380_000_000,
          power1_rated_max: 190_000_000,
          temp2_label: 'pkg',
          temp2_input: 61_000,
          temp2_crit: 100_000,
          temp2_emergency: 110_000,
          temp3_label: 'vram',
          temp3_input: 66_000,
          temp3_crit: 95_000,
          fan1_input: 1116,
          in1_label: 'pkg',
          in1_input: 913,
        }),
      },
    },
  ],
  processes: [
    {
      pid: 3100,
      files: [
        { target: '/dev/null', fdinfo: 'pos:\t0' },
        {
          target: '/dev/dri/renderD128',
          fdinfo: xeClient(40, '0000:03:00.0', { rcs: 0, ccs: 1_000_000, vcs: 0, total: 9_000_000 }, '4096 MiB'),
        },
        {
          target: '/dev/dri/renderD128',
          fdinfo: xeClient(40, '0000:03:00.0', { rcs: 0, ccs: 1_000_000, vcs: 0, total: 9_000_000 }, '4096 MiB'),
        },
      ],
    },
    {
      pid: 3200,
      files: [
        { target: '/dev/dri/card1', fdinfo: xeClient(41, '0000:03:00.0', { rcs: 50_000, ccs: 0, vcs: 0, total: 9_000_000 }, '262144 KiB') },
      ],
    },
  ],
}

export function i915Client(id: number, address: string, render: number, video: number): string {
  return `pos:\t0\ndrm-driver:\ti915\ndrm-client-id:\t${id}\ndrm-pdev:\t${address}\ndrm-total-system0:\t120 MiB\ndrm-resident-system0:\t80 MiB\ndrm-resident-stolen-system0:\t0\ndrm-engine-render:\t${render} ns\ndrm-engine-copy:\t0 ns\ndrm-engine-video:\t${video} ns\ndrm-engine-capacity-video:\t2\ndrm-engine-video-enhance:\t0 ns\n`
}

const I915_REASONS = Object.fromEntries(
  ['status', 'pl1', 'pl2', 'pl4', 'thermal', 'prochot', 'ratl', 'vr_thermalert', 'vr_tdc'].map((reason) => [
    `gt/gt0/throttle_reason_${reason}`,
    0,
  ]),
)

/** UHD Graphics 770 with i915: no sensors, memory of the host, two programs of one desktop. */
export const UHD_770: MachineTree = {
  cards: [
    {
      minor: 0,
      address: '0000:00:02.0',
      device: { vendor: '0x8086', device: '0x4680', uevent: 'DRIVER=i915\nPCI_SLOT_NAME=0000:00:02.0' },
      card: {
        gt_act_freq_mhz: 700,
        gt_RP0_freq_mhz: 1550,
        ...I915_REASONS,
        'gt/gt0/rps_act_freq_mhz': 700,
        'gt/gt0/rps_cur_freq_mhz': 700,
        'gt/gt0/rps_max_freq_mhz': 1550,
        'gt/gt0/rps_RP0_freq_mhz': 1550,
        'gt/gt0/rc6_residency_ms': 800_000,
      },
    },
  ],
  processes: [
    { pid: 1500, files: [{ target: '/dev/dri/card0', fdinfo: i915Client(3, '0000:00:02.0', 2_000_000_000, 0) }] },
    { pid: 1600, files: [{ target: '/dev/dri/renderD128', fdinfo: i915Client(7, '0000:00:02.0', 500_000_000, 100_000_000) }] },
  ],
  other: { 'proc/meminfo': 'MemTotal:       32768000 kB\nMemFree:        10000000 kB\nMemAvailable:   20480000 kB' },
}

/** Arc A380 with i915 on an older kernel: energy and limits, no temperatures, memory as i915 counts it. */
export const ARC_A380: MachineTree = {
  cards: [
    {
      minor: 1,
      address: '0000:04:00.0',
      device: {
        vendor: '0x8086',
        device: '0x56a5',
        uevent: 'DRIVER=i915',
        ...below('hwmon/hwmon2', { name: 'i915_gt0', energy1_input: 1 }),
        ...below('hwmon/hwmon3', { name: 'i915', energy1_input: 900_000_000, power1_max: 0, power1_rated_max: 55_000_000 }),
      },
      card: {
        lmem_total_bytes: 6 * GIBIBYTE,
        lmem_avail_bytes: 5 * GIBIBYTE,
        gt_act_freq_mhz: 2000,
        gt_RP0_freq_mhz: 2450,
        'power/rc6_residency_ms': 100,
      },
    },
  ],
}

/** Data Center GPU Max 1550 with xe: two tiles, memory told to root alone. */
export const MAX_1550: MachineTree = {
  cards: [
    {
      minor: 2,
      address: '0000:9a:00.0',
      device: {
        vendor: '0x8086',
        device: '0x0bd5',
        ...xeGt('tile0/gt0', 'gt0-rc', { act: 1400, rp0: 1600 }, [], 100),
        ...xeGt('tile1/gt1', 'gt1-rc', { act: 1600, rp0: 1600 }, ['thermal', 'prochot'], 100),
      },
    },
  ],
  other: {
    'sys/kernel/debug/dri/0000:9a:00.0/vram0_mm': `  use_type: 1\n  use_tt: 0\n  size: ${64 * GIBIBYTE}\n  usage: ${3 * GIBIBYTE}\ndefault_page_size: 4KiB`,
    'sys/kernel/debug/dri/0000:9a:00.0/vram1_mm': `  use_type: 1\n  use_tt: 0\n  size: ${64 * GIBIBYTE}\n  usage: ${2 * GIBIBYTE}\ndefault_page_size: 4KiB`,
  },
}
