// Compares every value that nvidia-smi also shows with what gpuwarden reads at the same time. Exit code 1 when one differs.
// node test/hardware/compare-nvidia-smi.js [--json FILE]; needs an NVIDIA GPU and a build.
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { GPUMonitor } from '../../dist/index.js'
import { numberOf, parseNvidiaSmi } from './nvidia-smi-xml.js'

const MIB = 1024 ** 2
const REASONS = {
  gpu_idle: 0x1,
  applications_clocks_setting: 0x2,
  sw_power_cap: 0x4,
  hw_slowdown: 0x8,
  sync_boost: 0x10,
  sw_thermal_slowdown: 0x20,
  hw_thermal_slowdown: 0x40,
  hw_power_brake_slowdown: 0x80,
  display_clocks_setting: 0x100,
}
// N/A where there is no fabric.
const FABRIC_STATES = { 'Not Started': 1, 'In Progress': 2, Completed: 3 }
const yes = (text) => (text === 'Yes' ? 1 : text === 'No' ? 0 : null)
const field = (name, path, scale = 1, slack = 0) => ({
  name,
  path,
  slack,
  theirs: (v) => scaled(numberOf(v[path]), scale),
  ours: (s) => s[name],
})
const fact = (name, path, scale = 1) => ({
  name,
  path,
  slack: 0,
  theirs: (v) => scaled(numberOf(v[path]), scale),
  ours: (_s, info) => info[name],
})
const words = (name, path) => ({ name, path, slack: 0, theirs: (v) => v[path], ours: (_s, info) => info[name] })
const scaled = (value, scale) => (value === null ? null : value * scale)

// slack: how far a reading may move between the two looks, besides the range seen before and after.
const COMPARED = [
  words('name', 'product_name'),
  words('id', 'uuid'),
  words('serial', 'serial'),
  words('pciBusId', 'pci/pci_bus_id'),
  fact('minor', 'minor_number'),
  fact('memoryTotalBytes', 'fb_memory_usage/total', MIB),
  words('vbiosVersion', 'vbios_version'),
  {
    ...words('computeMode', 'compute_mode'),
    theirs: (v) => ['Default', 'Exclusive_Thread', 'Prohibited', 'Exclusive_Process'].indexOf(v.compute_mode),
  },
  fact('powerLimitWatts', 'gpu_power_readings/requested_power_limit'),
  fact('powerLimitEnforcedWatts', 'gpu_power_readings/current_power_limit'),
  fact('powerLimitDefaultWatts', 'gpu_power_readings/default_power_limit'),
  fact('powerLimitMinWatts', 'gpu_power_readings/min_power_limit'),
  fact('powerLimitMaxWatts', 'gpu_power_readings/max_power_limit'),
  fact('smClockMaxHertz', 'max_clocks/sm_clock', 1e6),
  fact('memoryClockMaxHertz', 'max_clocks/mem_clock', 1e6),
  fact('pcieGenerationMax', 'pci/pci_gpu_link_info/pcie_gen/max_link_gen'),
  fact('pcieWidthMax', 'pci/pci_gpu_link_info/link_widths/max_link_width'),
  field('memoryUsedBytes', 'fb_memory_usage/used', MIB, MIB),
  field('memoryFreeBytes', 'fb_memory_usage/free', MIB, MIB),
  field('memoryReservedBytes', 'fb_memory_usage/reserved', MIB, MIB),
  field('utilizationRatio', 'utilization/gpu_util', 0.01, 0.15),
  field('memoryUtilizationRatio', 'utilization/memory_util', 0.01, 0.15),
  field('encoderRatio', 'utilization/encoder_util', 0.01),
  field('decoderRatio', 'utilization/decoder_util', 0.01),
  field('temperatureCelsius', 'temperature/gpu_temp', 1, 3),
  field('memoryTemperatureCelsius', 'temperature/memory_temp', 1, 3),
  field('powerWatts', 'gpu_power_readings/instant_power_draw', 1, 120),
  field('graphicsClockHertz', 'clocks/graphics_clock', 1e6, 60e6),
  field('smClockHertz', 'clocks/sm_clock', 1e6, 60e6),
  field('memoryClockHertz', 'clocks/mem_clock', 1e6),
  field('videoClockHertz', 'clocks/video_clock', 1e6, 60e6),
  field('fanRatio', 'fan_speed', 0.01, 0.05),
  field('pcieGeneration', 'pci/pci_gpu_link_info/pcie_gen/current_link_gen'),
  field('pcieWidth', 'pci/pci_gpu_link_info/link_widths/current_link_width'),
  field('pcieReplayCount', 'pci/replay_counter'),
  field('remappedCorrectableRows', 'remapped_rows/remapped_row_corr'),
  field('remappedUncorrectableRows', 'remapped_rows/remapped_row_unc'),
  {
    name: 'remapPending',
    path: 'remapped_rows/remapped_row_pending',
    slack: 0,
    theirs: (v) => yes(v['remapped_rows/remapped_row_pending']),
    ours: (s) => s.remapPending,
  },
  {
    name: 'remapFailure',
    path: 'remapped_rows/remapped_row_failure',
    slack: 0,
    theirs: (v) => yes(v['remapped_rows/remapped_row_failure']),
    ours: (s) => s.remapFailure,
  },
  {
    name: 'performanceState',
    path: 'performance_state',
    slack: 0,
    theirs: (v) => numberOf(v.performance_state?.slice(1)),
    ours: (s) => s.performanceState,
  },
  {
    name: 'recoveryAction',
    path: 'gpu_recovery_action',
    slack: 0,
    theirs: (v) => (v.gpu_recovery_action === 'None' ? 0 : null),
    ours: (s) => s.recoveryAction,
  },
  {
    name: 'fabricState',
    path: 'fabric/state',
    slack: 0,
    theirs: (v) => FABRIC_STATES[v['fabric/state']] ?? null,
    ours: (s) => s.fabricState,
  },
  {
    name: 'clockEventReasons',
    path: 'clocks_event_reasons/*',
    slack: 0,
    theirs: (v) =>
      Object.entries(REASONS).reduce(
        (mask, [name, bit]) => mask | (v[`clocks_event_reasons/clocks_event_reason_${name}`] === 'Active' ? bit : 0),
        0,
      ),
    ours: (s) => s.clockEventReasons,
  },
]

const monitor = new GPUMonitor({ source: 'nvidia', sampleInterval: 0.25, historySize: 4096 })
await monitor.start()
const settle = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
await settle(3000)
const seenBefore = monitor.history().length
const { stdout } = await promisify(execFile)('nvidia-smi', ['-q', '-x'], { maxBuffer: 64 * MIB })
await settle(1000)
// The two seconds around nvidia-smi's look: a reading that lies inside what we saw then agrees.
const around = monitor.history().slice(Math.max(0, seenBefore - 4))
const devices = monitor.devices()
await monitor.stop()

const smi = parseNvidiaSmi(stdout)
const rows = []
for (const info of devices.filter((device) => device.mig === null)) {
  const theirGpu = smi.gpus.find((gpu) => gpu.values.uuid === info.id)
  const samples = around.filter((sample) => sample.gpu === info.id)
  for (const { name, theirs, ours, slack } of COMPARED) {
    const their = theirs(theirGpu?.values ?? {}) ?? null
    const our = samples.map((sample) => ours(sample, info) ?? null)
    const known = our.filter((value) => value !== null)
    const agrees =
      their === null
        ? known.length === 0 || name === 'recoveryAction'
        : typeof their === 'string'
          ? our.includes(their)
          : known.length > 0 && their >= Math.min(...known) - slack - 1e-9 && their <= Math.max(...known) + slack + 1e-9
    rows.push({
      gpu: info.label,
      name,
      nvidiaSmi: their,
      gpuwarden: typeof known[0] === 'number' ? [Math.min(...known), Math.max(...known)] : (known[0] ?? null),
      agrees,
    })
  }
  const theirPids = (theirGpu?.processes ?? []).map((process) => Number(process.pid)).sort()
  const ourPids = (samples.at(-1)?.processes ?? []).map((process) => process.pid).sort()
  rows.push({
    gpu: info.label,
    name: 'processes',
    nvidiaSmi: theirPids.join(),
    gpuwarden: ourPids.join(),
    agrees: theirPids.join() === ourPids.join(),
  })
  for (const process of theirGpu?.processes ?? []) {
    const mine = samples.at(-1)?.processes?.find((one) => one.pid === Number(process.pid))
    const their = scaled(numberOf(process.used_memory), MIB)
    rows.push({
      gpu: info.label,
      name: `memory of ${process.pid}`,
      nvidiaSmi: their,
      gpuwarden: mine?.memoryUsedBytes ?? null,
      agrees: their === null ? mine?.memoryUsedBytes == null : Math.abs(their - (mine?.memoryUsedBytes ?? -1e12)) <= 256 * MIB,
    })
  }
}
for (const { gpu, name, nvidiaSmi, gpuwarden, agrees } of rows)
  console.log(
    `${agrees ? 'same' : 'DIFFERS'}  GPU ${gpu}  ${name.padEnd(28)} nvidia-smi ${JSON.stringify(nvidiaSmi)}  gpuwarden ${JSON.stringify(gpuwarden)}`,
  )
const wrong = rows.filter((row) => !row.agrees)
console.log(`${rows.length - wrong.length} of ${rows.length} agree`)
const out = process.argv.indexOf('--json')
if (out > 0) writeFileSync(process.argv[out + 1], JSON.stringify(rows, null, 1))
process.exitCode = wrong.length === 0 ? 0 : 1
