/** What people change by hand, and what takes the driver long (0.9 ms for the margin, 0.6 ms for the slowdowns on an H200): read every half minute. */
import type { GpuInfo } from '../../core/model.ts'
import type { Device, Readings } from './device.ts'
import { FieldBatch } from './fields.ts'
import { MARGIN_VERSION, REPAIR_VERSION, readUint32, readUint64 } from './layouts.ts'
import { allLinksReader, type LinkFacts } from './links.ts'
import { pcieThroughputReader } from './pcie-throughput.ts'
import { onOrOff, question } from './question.ts'

export type RareFacts = LinkFacts & Pick<GpuInfo, 'eccMode' | 'eccModePending' | 'persistenceMode' | 'bar1TotalBytes'>

const PER_NANO = 1e9
/** These fields had other numbers in driver 575, and did not exist before 570. */
const FIELDS_SINCE_580 = [
  { id: 269, field: 'softwareThermalSeconds', divisor: PER_NANO },
  { id: 270, field: 'hardwareThermalSeconds', divisor: PER_NANO },
  { id: 271, field: 'powerBrakeSeconds', divisor: PER_NANO },
] as const

const first = Buffer.alloc(24)
const second = Buffer.alloc(4)

export interface RareOptions {
  /** The driver is of branch 580 or later. */
  readonly hasNewFields: boolean
  /** Nothing else tells what goes over PCIe. */
  readonly measuresTraffic: () => boolean
}

export function rareReader(
  device: Device,
  { hasNewFields, measuresTraffic }: RareOptions,
): (out: Readings, monotonicMs: number) => RareFacts {
  const slowdowns = new FieldBatch(device, hasNewFields ? FIELDS_SINCE_580 : [])
  if (!hasNewFields) for (const { field } of FIELDS_SINCE_580) device.explain(field, 'driver too old: it came with 580')
  const margin = question(device, { symbols: ['nvmlDeviceGetMarginTemperature'], fields: ['temperatureMarginCelsius'] })
  const bar1 = question(device, { symbols: ['nvmlDeviceGetBAR1MemoryInfo'], fields: ['bar1TotalBytes', 'bar1UsedBytes'] })
  const repair = question(device, { symbols: ['nvmlDeviceGetRepairStatus'], fields: ['channelRepairPending', 'tpcRepairPending'] })
  const ecc = question(device, { symbols: ['nvmlDeviceGetEccMode'], fields: ['eccMode', 'eccModePending'], last: second })
  const persistence = question(device, { symbols: ['nvmlDeviceGetPersistenceMode'], fields: ['persistenceMode'] })
  const readLinks = allLinksReader(device)
  const throughput = pcieThroughputReader(device)

  return (out, monotonicMs) => {
    slowdowns.read(out, monotonicMs)
    first.writeUInt32LE(MARGIN_VERSION, 0)
    out.temperatureMarginCelsius = margin(first) ? first.readInt32LE(4) : null
    const hasBar1 = bar1(first)
    const bar1TotalBytes = hasBar1 ? readUint64(first, 0) : null
    out.bar1UsedBytes = hasBar1 ? readUint64(first, 16) : null
    first.writeUInt32LE(REPAIR_VERSION, 0)
    const hasRepair = repair(first)
    out.channelRepairPending = hasRepair ? readUint32(first, 4) : null
    out.tpcRepairPending = hasRepair ? readUint32(first, 8) : null
    const hasEcc = ecc(first)
    const eccMode = hasEcc ? onOrOff(first) : null
    const eccModePending = hasEcc ? onOrOff(second) : null
    const persistenceMode = persistence(first) ? onOrOff(first) : null
    if (measuresTraffic()) throughput(out)
    return { eccMode, eccModePending, persistenceMode, bar1TotalBytes, ...readLinks(out) }
  }
}
