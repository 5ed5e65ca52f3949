// Records what the real driver answers to every call that the NVIDIA source makes: fixtures/nvml/*.json are made with it.
// node test/hardware/capture-nvml.js FILE [TICKS]; needs an NVIDIA GPU and a build. Serial numbers and UUIDs are masked.
import { writeFileSync } from 'node:fs'
import { initialize, openLibrary } from '../../dist/sources/nvidia/library.js'
import { NvidiaSource } from '../../dist/sources/nvidia/source.js'

const [file = 'nvml.json', ticks = '3'] = process.argv.slice(2)
const env = { root: '/', env: process.env, intervalMs: 1000, options: { slowIntervalMs: 500 }, log: () => undefined, now: Date.now }
const real = await openLibrary(env, 1)
if (real === null) throw new Error('no NVML on this machine')

const MASKED = { nvmlDeviceGetUUID: 'GPU-aaaaaaaa-bbbb-cccc-dddd-000000000000', nvmlDeviceGetSerial: '1234567890123' }
/** Where the cluster's UUID, or the GUID and the serial number of the chassis, lie in the answer. */
const HIDDEN_BYTES = { nvmlDeviceGetGpuFabricInfoV: [4, 20], nvmlDeviceGetGpuFabricInfo: [0, 16], nvmlDeviceGetPlatformInfo: [4, 36] }
const calls = []
const functions = Object.fromEntries(
  Object.entries(real.functions).map(([name, call]) => [
    name,
    call &&
      ((...values) => {
        const code = call(...values)
        const mask = MASKED[name]
        if (mask) for (const value of values) if (Buffer.isBuffer(value)) value.fill(0).write(mask)
        const hidden = HIDDEN_BYTES[name]
        if (hidden) values[1].fill(name === 'nvmlDeviceGetPlatformInfo' ? 0 : 0xaa, ...hidden)
        calls.push({
          name,
          code,
          // Handles are addresses of this process: written as "handle".
          arguments: values.map((value) =>
            Buffer.isBuffer(value)
              ? { bytes: value.toString('hex').replace(/(00)+$/, '') }
              : typeof value === 'bigint' && value > 0xffffn
                ? 'handle'
                : typeof value === 'bigint'
                  ? Number(value)
                  : value,
          ),
        })
        return code
      }),
  ]),
)
const nvml = { path: real.path, functions }
initialize(nvml, '/')
const source = new NvidiaSource(env, nvml, 1, [])
const samples = []
for (let tick = 0; tick < Number(ticks); tick++) {
  samples.push(source.read({ at: 1_760_000_000_000 + tick * 1000, monotonicMs: tick * 1000, tick }))
  await new Promise((resolve) => setTimeout(resolve, 1000))
}
const devices = source.devices()
source.close()
writeFileSync(file, JSON.stringify({ calls, devices, samples }, null, 1))
console.log(`${calls.length} calls written to ${file}`)
