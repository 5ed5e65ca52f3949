/** How far a GPU has come in joining the NVLink fabric: only those behind NVSwitches have one. */
import type { GpuInfo } from '../../core/model.ts'
import { CODE, SYMBOL_MISSING } from './codes.ts'
import type { Device, Readings } from './device.ts'
import {
  decodeFabricV1,
  decodeFabricV2,
  decodeFabricV3,
  FABRIC_BYTES,
  FABRIC_V2_VERSION,
  FABRIC_V3_VERSION,
  type Fabric,
} from './layouts.ts'

const FIELDS = ['fabricState', 'fabricHealth', 'fabricCliqueId', 'fabricClusterId'] as const
const NO_FABRIC = 0
const COMPLETED = 3

/** The newest comes first: NVIDIA is to drop the others. */
const WAYS = [
  { symbol: 'nvmlDeviceGetGpuFabricInfoV', version: FABRIC_V3_VERSION, decode: decodeFabricV3 },
  { symbol: 'nvmlDeviceGetGpuFabricInfoV', version: FABRIC_V2_VERSION, decode: decodeFabricV2 },
  { symbol: 'nvmlDeviceGetGpuFabricInfo', version: 0, decode: decodeFabricV1 },
] as const

export type FabricFacts = Pick<GpuInfo, 'fabricCliqueId' | 'fabricClusterId'>

const NO_FACTS: FabricFacts = { fabricCliqueId: null, fabricClusterId: null }
const buffer = Buffer.alloc(FABRIC_BYTES)

/** Puts what changes into the readings, and gives the facts. */
export function fabricReader(device: Device): (out: Readings) => FabricFacts {
  const { functions } = device.nvml
  let ways = WAYS.filter(({ symbol }) => functions[symbol] !== null)
  const explain = (reason: string) => {
    for (const field of FIELDS) device.explain(field, reason)
  }
  if (ways.length === 0) explain(SYMBOL_MISSING)

  function ask(): Fabric | null {
    const [way] = ways
    if (way === undefined || device.fault !== null) return null
    buffer.fill(0)
    buffer.writeUInt32LE(way.version, 0)
    const code = functions[way.symbol]?.(device.handle, buffer) ?? CODE.functionNotFound
    if (ways.length > 1 && (code === CODE.argumentVersionMismatch || code === CODE.functionNotFound)) {
      ways = ways.slice(1)
      return ask()
    }
    const verdict = device.judge(code, FIELDS)
    if (verdict === 'never') ways = []
    return verdict === 'answered' ? way.decode(buffer) : null
  }

  return (out) => {
    out.fabricState = out.fabricHealth = null
    const fabric = ask()
    if (fabric === null) return NO_FACTS
    const { state, health, cliqueId, clusterId } = fabric
    if (state === NO_FABRIC || state > COMPLETED) {
      // It depends on how the machine is built, so it is not asked again; a state of a driver to come may pass.
      if (state === NO_FABRIC) ways = []
      explain(state === NO_FABRIC ? 'this GPU is in no NVLink fabric' : `the driver speaks of a state ${state}`)
      return NO_FACTS
    }
    for (const field of FIELDS) device.unexplain(field)
    if (health === null) device.explain('fabricHealth', 'the driver says nothing about it')
    out.fabricState = state
    out.fabricHealth = health
    // Before it has joined, the numbers mean nothing.
    return state === COMPLETED ? { fabricCliqueId: cliqueId, fabricClusterId: clusterId } : NO_FACTS
  }
}
