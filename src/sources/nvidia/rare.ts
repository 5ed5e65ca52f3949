/** What people change by hand or what takes the driver long: looked at every half minute. */
import type { GpuInfo } from '../../core/model.ts'
import type { Device, Readings } from './device.ts'
import { REPAIR_VERSION, readUint32, readUint64 } from './layouts.ts'
import { allLinksReader, type LinkFacts } from './links.ts'
import { pcieThroughputReader } from './pcie-throughput.ts'
import { onOrOff, question } from './question.ts'

export type RareFacts = LinkFacts & Pick<GpuInfo, 'eccMode' | 'eccModePending' | 'persistenceMode' | 'bar1TotalBytes'>

const first = Buffer.alloc(24)
const second = Buffer.alloc(4)

/** `measuresTraffic`: nothing else tells what goes over PCIe. */
export function rareReader(device: Device, measuresTraffic: () => boolean): (out: Readings) => RareFacts {
  const bar1 = question(device, { symbols: ['nvmlDeviceGetBAR1MemoryInfo'], fields: ['bar1TotalBytes', 'bar1UsedBytes'] })
  const repair = question(device, { symbols: ['nvmlDeviceGetRepairStatus'], fields: ['channelRepairPending', 'tpcRepairPending'] })
  const ecc = question(device, { symbols: ['nvmlDeviceGetEccMode'], fields: ['eccMode', 'eccModePending'], last: second })
  const persistence = question(device, { symbols: ['nvmlDeviceGetPersistenceMode'], fields: ['persistenceMode'] })
  const readLinks = allLinksReader(device)
  const throughput = pcieThroughputReader(device)

  return (out) => {
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
