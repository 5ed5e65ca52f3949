/** What the driver reports about one open device file, in proc/PID/fdinfo/N. */
import type { Reading } from '../../core/model.ts'

export interface DrmClient {
  readonly address: string
  /** The same number on several descriptors is the same client, to be counted once. */
  readonly client: string
  readonly vramBytes: Reading
  readonly gttBytes: Reading
  /** Nanoseconds of work since the file was opened; null before kernel 5.19. */
  readonly graphicsNs: Reading
  readonly computeNs: Reading
  readonly encoderNs: Reading
  readonly decoderNs: Reading
}

const UNIT_BYTES: Readonly<Record<string, number>> = { '': 1, kib: 1024, kb: 1024, mib: 1024 ** 2, gib: 1024 ** 3 }

function bytes(value: string | undefined): Reading {
  const match = value === undefined ? null : /^(\d{1,15})\s*([a-z]*)$/i.exec(value)
  const unit = match === null ? undefined : UNIT_BYTES[(match[2] ?? '').toLowerCase()]
  return match === null || unit === undefined ? null : Number(match[1]) * unit
}

function nanoseconds(fields: ReadonlyMap<string, string>, ...engines: readonly string[]): Reading {
  let sum: Reading = null
  for (const engine of engines) {
    const match = /^(\d{1,18})\s*ns$/.exec(fields.get(`drm-engine-${engine}`) ?? '')
    if (match !== null) sum = (sum ?? 0) + Number(match[1])
  }
  return sum
}

/** null: not an amdgpu file. Kernels before 5.19 write `pdev`, `pasid` and `vram mem` instead of `drm-…`. */
export function parseFdinfo(text: string): DrmClient | null {
  const fields = new Map<string, string>()
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim())
  }
  const driver = fields.get('drm-driver')
  if (driver === undefined ? !fields.has('vram mem') : driver !== 'amdgpu') return null
  const address = fields.get('drm-pdev') ?? fields.get('pdev')
  const client = fields.get('drm-client-id') ?? fields.get('pasid')
  if (!address || !client) return null
  const memory = (region: string) =>
    bytes(
      fields.get(`drm-resident-${region}`) ??
        fields.get(`drm-memory-${region}`) ??
        fields.get(`drm-total-${region}`) ??
        fields.get(`${region} mem`),
    )
  return {
    address: address.toLowerCase(),
    client,
    vramBytes: memory('vram'),
    gttBytes: memory('gtt'),
    graphicsNs: nanoseconds(fields, 'gfx'),
    computeNs: nanoseconds(fields, 'compute'),
    encoderNs: nanoseconds(fields, 'enc', 'enc_1'),
    decoderNs: nanoseconds(fields, 'dec', 'jpeg'),
  }
}
