/** What `status --json` and `metrics` print for each family of NVIDIA's GPUs, through the real program. UPDATE_GOLDEN=1 writes the files anew. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AGX_ORIN, type Tree } from '../src/sources/jetson/trees.fixture.ts'
import { buildFakeNvml, type FakeNvmlValues, fakeNvmlScript } from './fake-nvml/index.ts'
import { run, temporaryFolder } from './program.ts'

const FOLDER = fileURLToPath(new URL('golden/nvidia/', import.meta.url))
const GIB = 1024 ** 3
const MEMINFO = 'MemTotal:       125829120 kB\nMemFree:        20971520 kB\nMemAvailable:   83886080 kB\n'

/** Nothing moves. */
const STILL: FakeNvmlValues = {
  ...{
    gpus: 1,
    util: 87,
    mem_util: 41,
    temp: 61,
    mem_temp: 68,
    power: 312_500,
    energy: 7_200_000,
    reasons: 4,
    processes: 1,
    process_sm: 80,
  },
  ...{ graphics_clock: 1755, sm_clock: 1740, mem_clock: 2619, video_clock: 1545, util_timestamp: 4_102_444_800_000_000 },
}
/** Counters that the fake library moves. */
const STILL_COUNTERS = '197:1000,198:2000,138:3000,139:4000'

const HOPPER: FakeNvmlValues = {
  ...STILL,
  ...{ name: 'NVIDIA H100 80GB HBM3', memory_total: 80 * GIB, memory_used: 52 * GIB, memory_reserved: GIB, memory_power: 41_250 },
}

interface Family {
  readonly source: string
  readonly script?: FakeNvmlValues
  readonly files?: Tree
}

const FAMILIES: Readonly<Record<string, Family>> = {
  'geforce-rtx-4090': {
    source: 'nvidia',
    script: {
      ...STILL,
      ...{ name: 'NVIDIA GeForce RTX 4090', arch: 8, compute_major: 8, compute_minor: 9, serial: '', part_number: '', fan: 42, pstate: 2 },
      ...{
        memory_total: 24 * GIB,
        memory_used: 9 * GIB,
        memory_reserved: GIB / 4,
        gpm: 0,
        ecc_mode: -1,
        mig_unsupported: 1,
        confidential: -1,
      },
      ...{ pcie_gen: 4, pcie_gen_max: 4, power_limit: 450_000, power_limit_max: 600_000, persistence: 0, bar1_total: 32 * GIB, both: 1 },
      field_ret: '3:3,4:3,5:3,6:3,29:3,30:3,31:3,82:3,138:3,139:3,142:3,143:3,144:3,145:3,197:3,198:3',
    },
  },
  'h100-nvswitch': {
    source: 'nvidia',
    script: {
      ...HOPPER,
      ...{ nvlinks: 18, nvlink_down: 5, nvlink_errors: 1, fabric_state: 3, fabric_health: 3, fabric_clique: 32_766, jpeg: 5, ofa: 6 },
    },
  },
  'h100-mig': { source: 'nvidia', script: { ...HOPPER, mig: 4, mig_compute: 2, gpm_1: 25, gpm_2: 20, gpm_3: 10 } },
  gb10: {
    source: 'nvidia',
    script: {
      ...STILL,
      ...{ name: 'NVIDIA GB10', arch: 10, compute_major: 12, compute_minor: 1, gpm: 0, ecc_mode: -1, mig_unsupported: 1, processes: 2 },
      ...{ process_memory: 9 * GIB, field: STILL_COUNTERS, ret: ['nvmlDeviceGetMemoryInfo_v2:3', 'nvmlDeviceGetMemoryInfo:3'] },
      field_ret: '82:3,142:3,143:3,144:3,145:3',
    },
  },
  gb200: {
    source: 'nvidia',
    script: {
      ...STILL,
      ...{ name: 'NVIDIA GB200', arch: 10, compute_major: 10, memory_total: 186 * GIB, memory_used: 140 * GIB, memory_reserved: GIB },
      ...{ nvlinks: 2, c2c: 2, fabric_state: 3, fabric_health: 1, fabric_clique: 7, chassis: '1821325191344', module_power: 1_412_000 },
      ...{ power_smoothing: 1, memory_power: 88_000, margin: 12 },
      ...{ field: '215:4,219:5,221:6,231:7,232:8,269:1500000000', field_ret: '161:3,162:3,163:3' },
    },
  },
  'jetson-agx-orin': { source: 'jetson', files: AGX_ORIN },
}

/** Only of GPUs, and only what does not depend on the moment. */
function stable(page: string): string {
  return page
    .split('\n')
    .filter((line) => /^(gpu_|DCGM_|nvidia_smi_|gpuwarden_gpu_(up|state))/.test(line) && !/_age_seconds|last_collect/.test(line))
    .join('\n')
    .replace(/Hostname="[^"]*"/g, 'Hostname="node-7"')
}

describe('what a family of GPUs shows', () => {
  it.each(Object.entries(FAMILIES))('%s', async (name, { source, script, files = {} }) => {
    const root = temporaryFolder()
    for (const [path, text] of Object.entries({ 'proc/meminfo': MEMINFO, ...files })) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    }
    const fake = fakeNvmlScript(script)
    onTestFinished(() => {
      fake.remove()
      rmSync(root, { recursive: true, force: true })
    })
    const env = { GPUWARDEN_ROOT: root, ...(script === undefined ? {} : { GPUWARDEN_NVML: buildFakeNvml(), ...fake.env }) }
    const [status, metrics] = await Promise.all([
      run(['status', '--json', '--source', source], env),
      run(['metrics', '--source', source, '--metrics', 'native,dcgm,nvidia_smi'], env),
    ])
    expect([status.code, metrics.code, status.stderr, metrics.stderr]).toEqual([0, 0, '', ''])
    const report = status.stdout.replace(/"timestamp": "[^"]*"/, '"timestamp": "…"').replace(/"samples_count": \d+/g, '"samples_count": 2')
    for (const [file, text] of [
      [`${name}.status.golden.json`, report],
      [`${name}.metrics.golden.txt`, `${stable(metrics.stdout)}\n`],
    ] as const) {
      const path = join(FOLDER, file)
      if (process.env.UPDATE_GOLDEN === '1') {
        mkdirSync(FOLDER, { recursive: true })
        writeFileSync(path, text)
      }
      expect(text, file).toBe(readFileSync(path, 'utf8'))
    }
  })
})
