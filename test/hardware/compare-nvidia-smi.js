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
const FABRIC_HEALTH = { Healthy: 1, Unhealthy: 2, 'Limited Capacity': 3 }
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
const known = (text) => (text === 'N/A' || text === '[N/A]' ? null : (text ?? null))
const words = (name, path) => ({ name, path, slack: 0, theirs: (v) => known(v[path]), ours: (_s, info) => info[name] })
const mode = (name, path) => ({ ...words(name, path), theirs: (v) => known(v[path])?.toLowerCase() ?? null })
const pending = (name, path) => ({ name, path, slack: 0, theirs: (v) => yes(v[path]), ours: (s) => s[name] })
const place = (name, path) => ({
  name: `platform.${name}`,
  path,
  slack: 0,
  theirs: (v) => known(v[path]),
  ours: (_s, info) => text(info.platform?.[name]),
})
const text = (value) => (value === null || value === undefined ? null : String(value))
const MICROSECOND = 1e-6
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
  words('partNumber', 'board_part_number'),
  words('gspFirmwareVersion', 'gsp_firmware_version'),
  mode('eccMode', 'ecc_mode/current_ecc'),
  mode('eccModePending', 'ecc_mode/pending_ecc'),
  mode('persistenceMode', 'persistence_mode'),
  mode('migMode', 'mig_mode/current_mig'),
  mode('powerSmoothing', 'power_smoothing'),
  fact('bar1TotalBytes', 'bar1_memory_usage/total', MIB),
  field('bar1UsedBytes', 'bar1_memory_usage/used', MIB, 2 * MIB),
  field('jpegRatio', 'utilization/jpeg_util', 0.01, 0.05),
  field('ofaRatio', 'utilization/ofa_util', 0.01, 0.05),
  field('temperatureMarginCelsius', 'temperature/gpu_temp_tlimit', 1, 4),
  field('memoryPowerWatts', 'gpu_memory_power_readings/average_power_draw', 1, 20),
  field('modulePowerWatts', 'module_power_readings/instant_power_draw', 1, 120),
  field('powerViolationSeconds', 'clocks_event_reasons_counters/clocks_event_reasons_counters_sw_power_cap', MICROSECOND, 11),
  field('softwareThermalSeconds', 'clocks_event_reasons_counters/clocks_event_reasons_counters_sw_therm_slowdown', MICROSECOND, 11),
  field('hardwareThermalSeconds', 'clocks_event_reasons_counters/clocks_event_reasons_counters_hw_therm_slowdown', MICROSECOND, 11),
  field('powerBrakeSeconds', 'clocks_event_reasons_counters/clocks_event_reasons_counters_hw_power_brake', MICROSECOND, 11),
  pending('channelRepairPending', 'ecc_errors/channel_repair_pending'),
  pending('tpcRepairPending', 'ecc_errors/tpc_repair_pending'),
  {
    name: 'fabricHealth',
    path: 'fabric/health/summary',
    slack: 0,
    theirs: (v) => FABRIC_HEALTH[v['fabric/health/summary']] ?? null,
    ours: (s) => s.fabricHealth,
  },
  fact('fabricCliqueId', 'fabric/cliqueId'),
  words('fabricClusterId', 'fabric/clusterUuid'),
  place('chassisSerial', 'platformInfo/chassis_serial_number'),
  place('slot', 'platformInfo/slot_number'),
  place('tray', 'platformInfo/tray_index'),
  place('host', 'platformInfo/host_id'),
  {
    name: 'c2cLinks',
    path: 'c2c_mode',
    slack: 0,
    theirs: (v) => (v.c2c_mode === 'Enabled' ? 'linked' : null),
    ours: (_s, info) => (info.c2cLinks.length > 0 ? 'linked' : null),
  },
  {
    name: 'confidentialComputing',
    path: 'conf-compute -f',
    slack: 0,
    theirs: (v) => v['conf-compute'] ?? null,
    ours: (_s, info) => (info.confidentialComputing === 'devtools' ? 'on' : info.confidentialComputing),
  },
  {
    name: 'nvlinkActiveCount',
    path: 'nvlink -s',
    slack: 0,
    theirs: (v) => v['nvlink/active'] ?? null,
    ours: (s) => s.nvlinkActiveCount,
  },
  {
    name: 'nvlinkReplayCount',
    path: 'nvlink -e',
    slack: 0,
    theirs: (v) => v['nvlink/replay'] ?? null,
    ours: (s) => s.nvlinkReplayCount,
  },
  // The same by --query-gpu, which reads some of them another way.
  mode('eccMode', 'query/ecc.mode.current'),
  mode('persistenceMode', 'query/persistence_mode'),
  field('jpegRatio', 'query/utilization.jpeg', 0.01, 0.05),
  field('ofaRatio', 'query/utilization.ofa', 0.01, 0.05),
  field('temperatureMarginCelsius', 'query/temperature.gpu.tlimit', 1, 4),
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
const ask = async (...args) => (await promisify(execFile)('nvidia-smi', args, { maxBuffer: 64 * MIB })).stdout
const askIfKnown = (...args) => ask(...args).catch(() => '')
const stdout = await ask('-q', '-x')
const QUERY = ['uuid', 'ecc.mode.current', 'persistence_mode', 'utilization.jpeg', 'utilization.ofa', 'temperature.gpu.tlimit']
const queried = await askIfKnown(`--query-gpu=${QUERY.join()}`, '--format=csv,noheader,nounits')
const confidential = /CC status:\s*(\w+)/.exec(await askIfKnown('conf-compute', '-f'))?.[1]?.toLowerCase()
const linkStates = await askIfKnown('nvlink', '-s')
const linkErrors = await askIfKnown('nvlink', '-e')
await settle(1000)
// The two seconds around nvidia-smi's look: a reading that lies inside what we saw then agrees.
const around = monitor.history().slice(Math.max(0, seenBefore - 4))
const devices = monitor.devices()
await monitor.stop()

/** What `nvidia-smi nvlink` says of one GPU. */
const ofGpu = (text, uuid) => text.split(/^(?=GPU \d+:)/m).find((part) => part.includes(uuid)) ?? ''
function nvlinksOf(uuid) {
  const links = [...ofGpu(linkStates, uuid).matchAll(/^\s*Link \d+: (.*)$/gm)]
  const replays = [...ofGpu(linkErrors, uuid).matchAll(/Replay Errors: (\d+)/g)]
  return {
    'nvlink/active': links.length === 0 ? null : links.filter(([, state]) => /GB\/s/.test(state)).length,
    'nvlink/replay': replays.length === 0 ? null : replays.reduce((sum, [, count]) => sum + Number(count), 0),
  }
}

/** Of `nvidia-smi -q -x`: each MIG device with its ids and memory. */
function migDevicesOf(uuid) {
  const gpu = stdout.split(/<gpu id=/).find((part) => part.includes(`<uuid>${uuid}</uuid>`)) ?? ''
  return [...gpu.matchAll(/<mig_device>([\s\S]*?)<\/mig_device>/g)].map(([, body]) => {
    const number = (name) => numberOf(new RegExp(`<${name}>\\s*([^<]*)`).exec(body)?.[1])
    const memory = /<fb_memory_usage>([\s\S]*?)<\/fb_memory_usage>/.exec(body)?.[1] ?? ''
    const amount = (name) => scaled(numberOf(new RegExp(`<${name}>\\s*([^<]*)`).exec(memory)?.[1]), MIB)
    return {
      gpuInstance: number('gpu_instance_id'),
      computeInstance: number('compute_instance_id'),
      total: amount('total'),
      used: amount('used'),
    }
  })
}

const smi = parseNvidiaSmi(stdout)
for (const { values } of smi.gpus) {
  const cells = queried
    .split('\n')
    .map((line) => line.split(', '))
    .find(([uuid]) => uuid === values.uuid)
  if (cells) for (const [position, name] of QUERY.entries()) values[`query/${name}`] = cells[position]
  values['conf-compute'] = confidential
  Object.assign(values, nvlinksOf(values.uuid))
}
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
  for (const their of migDevicesOf(info.id)) {
    const mine = devices.find(
      ({ mig }) => mig?.parentId === info.id && mig.gpuInstanceId === their.gpuInstance && mig.computeInstanceId === their.computeInstance,
    )
    const sample = around.findLast((one) => one.gpu === mine?.id)
    const agrees =
      mine !== undefined && sample?.memoryTotalBytes === their.total && Math.abs(sample.memoryUsedBytes - their.used) <= 64 * MIB
    rows.push({
      gpu: mine?.label ?? info.label,
      name: 'MIG instance',
      nvidiaSmi: their,
      gpuwarden: sample?.memoryUsedBytes ?? null,
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
