// What each NVML call costs on this card: microseconds of wall clock and of CPU, median and mean of many.
// node bench/nvml-calls.mjs [COUNT]; needs an NVIDIA GPU and a build.
import { openLibrary } from '../dist/sources/nvidia/library.js'

const count = Number(process.argv[2] ?? 200)
const env = { root: '/', env: process.env, intervalMs: 1000, options: {}, log: () => undefined, now: Date.now }
const nvml = await openLibrary(env, 1)
if (nvml === null) throw new Error('no NVML on this machine')
const f = nvml.functions
f.nvmlInit_v2()
const handleBuffer = Buffer.alloc(8)
f.nvmlDeviceGetHandleByIndex_v2(0, handleBuffer)
const device = handleBuffer.readBigUInt64LE(0)
const out = Buffer.alloc(65536)
const small = Buffer.alloc(64)

const fields = (...ids) => scoped(...ids.map((id) => [id, id === 138 || id === 139 ? 0xffffffff : 0]))

function scoped(...asked) {
  const buffer = Buffer.alloc(40 * asked.length)
  for (const [place, [id, scope]] of asked.entries()) {
    buffer.writeUInt32LE(id, place * 40)
    buffer.writeUInt32LE(scope, place * 40 + 4)
  }
  return () => f.nvmlDeviceGetFieldValues(device, asked.length, buffer)
}

function processes(call) {
  return () => {
    small.writeUInt32LE(64, 0)
    return call(device, small, out)
  }
}

const samples = [0, 1].map(() => {
  f.nvmlGpmSampleAlloc?.(handleBuffer)
  return handleBuffer.readBigUInt64LE(0)
})
function gpm(...ids) {
  const buffer = Buffer.alloc(24 + 40 * 333)
  return () => {
    buffer.writeUInt32LE(1, 0)
    buffer.writeUInt32LE(ids.length, 4)
    buffer.writeBigUInt64LE(samples[0], 8)
    buffer.writeBigUInt64LE(samples[1], 16)
    for (const [place, id] of ids.entries()) buffer.writeUInt32LE(id, 24 + 40 * place)
    return f.nvmlGpmMetricsGet(buffer)
  }
}
const memory = Buffer.alloc(40)
memory.writeUInt32LE(40 | (2 << 24), 0)

const CALLS = {
  MemoryInfo_v2: () => f.nvmlDeviceGetMemoryInfo_v2(device, memory),
  UtilizationRates: () => f.nvmlDeviceGetUtilizationRates(device, out),
  Temperature: () => f.nvmlDeviceGetTemperature(device, 0, out),
  'ClockInfo ×4': () => [0, 1, 2, 3].map((type) => f.nvmlDeviceGetClockInfo(device, type, out))[0],
  ClocksEventReasons: () => f.nvmlDeviceGetCurrentClocksEventReasons(device, out),
  PerformanceState: () => f.nvmlDeviceGetPerformanceState(device, out),
  EncoderUtilization: () => f.nvmlDeviceGetEncoderUtilization(device, out, small),
  DecoderUtilization: () => f.nvmlDeviceGetDecoderUtilization(device, out, small),
  ComputeProcesses: processes(f.nvmlDeviceGetComputeRunningProcesses_v3),
  GraphicsProcesses: processes(f.nvmlDeviceGetGraphicsRunningProcesses_v3),
  PowerUsage: () => f.nvmlDeviceGetPowerUsage(device, out),
  'field 186 power': fields(186),
  'field 82 memory temperature': fields(82),
  'field 197 PCIe TX': fields(197),
  'fields 197+198 PCIe': fields(197, 198),
  'fields 138+139 NVLink': fields(138, 139),
  'fields 186+82+197+198+138+139': fields(186, 82, 197, 198, 138, 139),
  'field 83 energy': fields(83),
  'fields 3-6 ECC': fields(3, 4, 5, 6),
  'fields 74+75 violations': fields(74, 75),
  'field 94 replay': fields(94),
  'fields 142-145 remap': fields(142, 143, 144, 145),
  'field 230 recovery': fields(230),
  'fields 185+186 memory, module': scoped([185, 2], [186, 1]),
  'fields 269-271 slowdowns': fields(269, 270, 271),
  'fields 91+170 link counts': fields(91, 170),
  JpgUtilization: () => f.nvmlDeviceGetJpgUtilization(device, out, small),
  OfaUtilization: () => f.nvmlDeviceGetOfaUtilization(device, out, small),
  MarginTemperature: () => {
    out.writeUInt32LE(8 | (1 << 24), 0)
    return f.nvmlDeviceGetMarginTemperature(device, out)
  },
  BAR1MemoryInfo: () => f.nvmlDeviceGetBAR1MemoryInfo(device, out),
  EccMode: () => f.nvmlDeviceGetEccMode(device, out, small),
  PersistenceMode: () => f.nvmlDeviceGetPersistenceMode(device, out),
  RepairStatus: () => {
    out.writeUInt32LE(12 | (1 << 24), 0)
    return f.nvmlDeviceGetRepairStatus(device, out)
  },
  NvLinkState: () => f.nvmlDeviceGetNvLinkState(device, 0, out),
  LinkGeneration: () => f.nvmlDeviceGetCurrPcieLinkGeneration(device, out),
  LinkWidth: () => f.nvmlDeviceGetCurrPcieLinkWidth(device, out),
  GpmSampleGet: () => {
    turn = 1 - turn
    return f.nvmlGpmSampleGet(device, samples[turn])
  },
  ...Object.fromEntries([1, 2, 3, 5, 10, 11, 12, 13, 20, 21, 60, 61].map((id) => [`GpmMetricsGet ${id}`, gpm(id)])),
  'GpmMetricsGet without 10': gpm(1, 2, 3, 5, 11, 12, 13, 20, 21, 60, 61),
  'GpmMetricsGet all 12': gpm(1, 2, 3, 5, 10, 11, 12, 13, 20, 21, 60, 61),
}
let turn = 0

for (const [name, call] of Object.entries(CALLS)) {
  const times = []
  const before = process.cpuUsage()
  let code = 0
  for (let i = 0; i < count; i++) {
    const start = process.hrtime.bigint()
    code = call()
    times.push(Number(process.hrtime.bigint() - start) / 1000)
  }
  const { user, system } = process.cpuUsage(before)
  times.sort((a, b) => a - b)
  console.log(
    `${name.padEnd(32)} median ${times[count >> 1].toFixed(1).padStart(8)} µs  mean ${(times.reduce((a, b) => a + b) / count).toFixed(1).padStart(8)} µs  CPU ${((user + system) / count).toFixed(1).padStart(8)} µs  code ${code}`,
  )
}
