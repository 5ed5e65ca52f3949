/** AMD cards through the files of the amdgpu driver; no ROCm needed. */
import { drmSource } from '../drm/source.ts'
import { AmdCard } from './awake-card.ts'
import { parseClient } from './fdinfo.ts'
import { type AmdIdentity, identify } from './identity.ts'
import { KfdProcesses } from './kfd-processes.ts'

export const amd = drmSource<AmdIdentity>({
  vendor: 'amd',
  pciVendor: '0x1002',
  parseClient,
  identify,
  awaken: (place, reader, identity) => new AmdCard(place, reader, identity),
  compute: { deviceFile: '/dev/kfd', open: (root) => new KfdProcesses(root) },
  hiddenProcesses: "other users' processes are listed only if they use compute (kfd): run as root to see all",
})
