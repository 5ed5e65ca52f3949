/** What amdgpu reports about one open device file. */
import type { Reading } from '../../core/model.ts'
import { engineNanoseconds, parseBytes, regionBytes } from '../drm/fdinfo.ts'
import type { DrmClient, EngineWork } from '../drm/process-use.ts'

/** null: not an amdgpu file. Kernels before 5.19 write `pdev`, `pasid` and `vram mem` instead of `drm-…`, and no engines. */
export function parseClient(fields: ReadonlyMap<string, string>): DrmClient | null {
  const driver = fields.get('drm-driver')
  if (driver === undefined ? !fields.has('vram mem') : driver !== 'amdgpu') return null
  const address = fields.get('drm-pdev') ?? fields.get('pdev')
  const client = fields.get('drm-client-id') ?? fields.get('pasid')
  if (!address || !client) return null
  const memory = (region: string): Reading => regionBytes(fields, region) ?? parseBytes(fields.get(`${region} mem`))
  const work = (...engines: readonly string[]): EngineWork | null => {
    const busy = engineNanoseconds(fields, ...engines)
    return busy === null ? null : { busy, total: null, capacity: 1 }
  }
  return {
    address: address.toLowerCase(),
    client,
    ownBytes: memory('vram'),
    borrowedBytes: memory('gtt'),
    engines: { graphics: work('gfx'), compute: work('compute'), encoder: work('enc', 'enc_1'), decoder: work('dec', 'jpeg') },
  }
}
