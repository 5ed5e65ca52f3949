/** The readings that cost milliseconds or hardly ever change, taken every few seconds. */
import type { Reading } from '../../core/model.ts'
import { CODE, SYMBOL_MISSING } from './codes.ts'
import type { Device, Readings } from './device.ts'
import { type FabricFacts, fabricReader } from './fabric.ts'
import { codec } from './fast.ts'
import { FieldBatch } from './fields.ts'
import { readUint64 } from './layouts.ts'
import { uint32Reading, uint64Reading } from './question.ts'

const PER_MILLI = 1e3
const PER_NANO = 1e9
const CORRECTED = 0
const UNCORRECTED = 1
const VOLATILE = 0
const AGGREGATE = 1

const scratch = Buffer.alloc(8)

/** The scopes of power fields: the whole module, and the memory of the GPU. */
const OF_MODULE = 1
const OF_MEMORY = 2
export function slowReader(device: Device): (out: Readings, monotonicMs: number) => FabricFacts {
  const jpeg = codec(device, 'nvmlDeviceGetJpgUtilization', 'jpegRatio')
  const ofa = codec(device, 'nvmlDeviceGetOfaUtilization', 'ofaRatio')
  const fan = uint32Reading(device, { symbols: ['nvmlDeviceGetFanSpeed'], fields: ['fanRatio'] })
  const generation = uint32Reading(device, { symbols: ['nvmlDeviceGetCurrPcieLinkGeneration'], fields: ['pcieGeneration'] })
  const width = uint32Reading(device, { symbols: ['nvmlDeviceGetCurrPcieLinkWidth'], fields: ['pcieWidth'] })
  const fabric = fabricReader(device)
  const energy = uint64Reading(device, { symbols: ['nvmlDeviceGetTotalEnergyConsumption'], fields: ['energyJoules'] })
  const replays = uint32Reading(device, { symbols: ['nvmlDeviceGetPcieReplayCounter'], fields: ['pcieReplayCount'] })
  const fields = new FieldBatch(device, [
    { id: 83, field: 'energyJoules', divisor: PER_MILLI, fallback: energy },
    { id: 3, field: 'eccCorrectedVolatileCount', divisor: 1, fallback: ecc(device, 'eccCorrectedVolatileCount', CORRECTED, VOLATILE) },
    {
      id: 4,
      field: 'eccUncorrectedVolatileCount',
      divisor: 1,
      fallback: ecc(device, 'eccUncorrectedVolatileCount', UNCORRECTED, VOLATILE),
    },
    { id: 5, field: 'eccCorrectedAggregateCount', divisor: 1, fallback: ecc(device, 'eccCorrectedAggregateCount', CORRECTED, AGGREGATE) },
    {
      id: 6,
      field: 'eccUncorrectedAggregateCount',
      divisor: 1,
      fallback: ecc(device, 'eccUncorrectedAggregateCount', UNCORRECTED, AGGREGATE),
    },
    { id: 29, field: 'retiredPagesSingleBit', divisor: 1 },
    { id: 30, field: 'retiredPagesDoubleBit', divisor: 1 },
    { id: 31, field: 'retiredPagesPending', divisor: 1 },
    { id: 74, field: 'powerViolationSeconds', divisor: PER_NANO },
    { id: 75, field: 'thermalViolationSeconds', divisor: PER_NANO },
    { id: 94, field: 'pcieReplayCount', divisor: 1, fallback: replays },
    { id: 142, field: 'remappedCorrectableRows', divisor: 1 },
    { id: 143, field: 'remappedUncorrectableRows', divisor: 1 },
    { id: 144, field: 'remapPending', divisor: 1 },
    { id: 145, field: 'remapFailure', divisor: 1 },
    { id: 230, field: 'recoveryAction', divisor: 1 },
    { id: 186, field: 'modulePowerWatts', divisor: PER_MILLI, scope: OF_MODULE },
    { id: 185, field: 'memoryPowerWatts', divisor: PER_MILLI, scope: OF_MEMORY },
  ])

  return (out, monotonicMs) => {
    fields.read(out, monotonicMs)
    const speed = fan()
    // NVML: may exceed 100 when the fan is over its nominal speed.
    out.fanRatio = speed === null ? null : Math.min(speed, 100) / 100
    out.pcieGeneration = generation()
    out.pcieWidth = width()
    out.jpegRatio = jpeg()
    out.ofaRatio = ofa()
    return fabric(out)
  }
}

/** For drivers without the ECC fields. */
function ecc(device: Device, field: string, severity: number, lifetime: number): () => Reading {
  const call = device.nvml.functions.nvmlDeviceGetTotalEccErrors
  let over = false
  return () => {
    if (over || device.fault !== null) return null
    if (call === null) device.explain(field, SYMBOL_MISSING)
    const verdict = device.judge(call?.(device.handle, severity, lifetime, scratch) ?? CODE.functionNotFound, call === null ? [] : [field])
    over = verdict === 'never'
    return verdict === 'answered' ? readUint64(scratch, 0) : null
  }
}
