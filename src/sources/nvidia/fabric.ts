/** How far a GPU has come in joining the NVLink fabric: only those behind NVSwitches have one. */
import type { Reading } from '../../core/model.ts'
import { CODE, SYMBOL_MISSING } from './codes.ts'
import type { Device } from './device.ts'
import { decodeFabricStateV1, decodeFabricStateV2, FABRIC_V2_BYTES, FABRIC_V2_VERSION } from './layouts.ts'

const FIELD = 'fabricState'
const NO_FABRIC = 0
const COMPLETED = 3

/** The one with a version comes first: NVIDIA is to drop the other. */
const WAYS = [
  { symbol: 'nvmlDeviceGetGpuFabricInfoV', version: FABRIC_V2_VERSION, decode: decodeFabricStateV2 },
  { symbol: 'nvmlDeviceGetGpuFabricInfo', version: 0, decode: decodeFabricStateV1 },
] as const

const buffer = Buffer.alloc(FABRIC_V2_BYTES)

export function fabricReader(device: Device): () => Reading {
  const { functions } = device.nvml
  let ways = WAYS.filter(({ symbol }) => functions[symbol] !== null)
  if (ways.length === 0) device.explain(FIELD, SYMBOL_MISSING)

  function read(): Reading {
    const [way] = ways
    if (way === undefined || device.fault !== null) return null
    buffer.fill(0)
    buffer.writeUInt32LE(way.version, 0)
    const code = functions[way.symbol]?.(device.handle, buffer) ?? CODE.functionNotFound
    if (ways.length > 1 && (code === CODE.argumentVersionMismatch || code === CODE.functionNotFound)) {
      ways = ways.slice(1)
      return read()
    }
    const verdict = device.judge(code, [FIELD])
    if (verdict === 'never') ways = []
    return verdict === 'answered' ? take(way.decode(buffer)) : null
  }

  function take(state: number): Reading {
    if (state > NO_FABRIC && state <= COMPLETED) {
      device.unexplain(FIELD)
      return state
    }
    // It depends on how the machine is built, so it is not asked again; a state of a driver to come may pass.
    if (state === NO_FABRIC) ways = []
    device.explain(FIELD, state === NO_FABRIC ? 'this GPU is in no NVLink fabric' : `the driver speaks of a state ${state}`)
    return null
  }

  return read
}
