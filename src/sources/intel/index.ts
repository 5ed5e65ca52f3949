/** Intel cards and graphics inside processors, through the files of the xe and i915 drivers; no library of the vendor needed. */
import { drmSource } from '../drm/source.ts'
import { IntelCard } from './awake-card.ts'
import { parseClient } from './fdinfo.ts'
import { type IntelIdentity, identify } from './identity.ts'

export const intel = drmSource<IntelIdentity>({
  vendor: 'intel',
  pciVendor: '0x8086',
  parseClient,
  identify,
  awaken: (place, reader, identity) => new IntelCard(place, reader, identity),
  hiddenProcesses:
    "other users' processes are not visible: run as root to see all; until then utilization is the share of time that the GPU was not asleep",
})
